"""Refinement: a fine grid of configurations of which only those are measured that the picture needs."""
