"""A metric over the versions of a kernel or a project."""
