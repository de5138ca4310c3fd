"""Kernels as files: fetching them with their packages, QEMU, modules and symbols."""
