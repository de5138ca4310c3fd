"""Kernels: their specification, and what is asked of the package that builds them."""
