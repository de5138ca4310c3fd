"""Trials in kernels that QEMU boots."""
