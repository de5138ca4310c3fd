"""Kernels: specification, fetching, sources, building, Kconfig, differences."""
