"""Diagnostics of a measurement's noise; pure, one file each. docs/explanation/diagnostics.md explains them."""
