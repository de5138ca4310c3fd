"""Quietness of a machine: measured, judged, and what to do about it."""
