"""Kernels: specification, fetching, configuration, symbols, and what is asked of the package that builds them."""
