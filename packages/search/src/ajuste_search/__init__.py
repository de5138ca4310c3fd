"""Search: which configurations are best, which lines of a profile matter, and what lies between levels."""
