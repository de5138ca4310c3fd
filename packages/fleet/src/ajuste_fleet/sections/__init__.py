"""Sections of a report on several machines."""
