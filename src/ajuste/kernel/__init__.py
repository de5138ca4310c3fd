"""Kernels: specification, building, Kconfig, differences."""
