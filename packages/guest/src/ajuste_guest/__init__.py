"""Guests of Ajuste: real kernels booted in QEMU, counted to the instruction, and why their figures differ."""
