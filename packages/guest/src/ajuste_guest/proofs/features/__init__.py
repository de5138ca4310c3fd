"""The features that can be proved: one file for each, or for a few of a kind."""
