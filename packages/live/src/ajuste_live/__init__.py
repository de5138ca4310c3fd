"""Experiments on a running service: sources of metrics, guards, and slices of time."""
