"""Benchmarks of Ajuste beside its peers, side by side in one run. ``python -m benchmarks [NAME …]``."""
