"""Bisection: the version, option or revision of a kernel that brought a difference."""
