"""Verdicts on results that were measured elsewhere, and the files that have them."""
