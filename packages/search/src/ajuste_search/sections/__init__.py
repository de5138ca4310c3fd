"""Sections of a report on what a search finds."""
