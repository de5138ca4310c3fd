"""Facets of runs on several machines: the fleet, and the order in which its machines began."""
