"""Rare stalls and races that ``ajuste hunt`` is to hit."""
