"""Guests: the machine, its files, and the lens that counts in it."""
