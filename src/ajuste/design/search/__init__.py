"""Finding good configurations with few trials: what to try next, whom to replicate, and what is known of the best.

Pure: no files, clocks or processes.
"""
