"""Ablation: which lines of a profile matter, and how much each contributes."""
