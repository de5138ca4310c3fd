"""Ajuste on more CPUs, and an example of each thing that a package can add."""
