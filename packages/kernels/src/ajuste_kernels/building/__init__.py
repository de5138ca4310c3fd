"""Building kernels from sources."""
