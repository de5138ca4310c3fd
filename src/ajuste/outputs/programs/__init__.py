"""Readers of the output of workloads, one file each, named as the catalogue calls it (``parser``)."""
