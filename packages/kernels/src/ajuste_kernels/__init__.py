"""Kernels built from sources: options and why they are so, differences of two kernels, and bisection."""
