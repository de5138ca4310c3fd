"""Surfaces in a report: a metric over the levels of numeric factors."""
