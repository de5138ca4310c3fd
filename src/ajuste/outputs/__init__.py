"""Results that were measured elsewhere: one file for each format that is read."""
