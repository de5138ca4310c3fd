"""The results of a search."""
