"""Facets of runs that search."""
