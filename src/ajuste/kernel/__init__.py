"""Kernels: specification, configuration, and what is asked of the package that builds them."""
