"""Diagnostics of a measurement's noise; pure, one file each. docs/diagnostics.md explains them."""
