"""Experiments on a running service: its metrics where they are, its guards, and slices of time."""
