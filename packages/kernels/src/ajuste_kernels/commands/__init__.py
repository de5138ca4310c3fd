"""The commands of ajuste-kernels."""
