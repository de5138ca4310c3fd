"""The study file: what it says, where it is wrong, and what it comes to on given kernels."""
