"""Trials on many cores and machines, through Dask distributed."""
