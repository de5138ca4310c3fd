"""Tuning: the best configuration in few trials."""
