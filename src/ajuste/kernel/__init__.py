"""Kernels: specification, fetching, sources, configuration, differences."""
