"""Samplers: what to try next, one file for each kind, all behind one interface."""
