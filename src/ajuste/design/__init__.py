"""The design of a study: random order in blocks, what a seed perturbs, when to stop.

Pure: no files, clocks or processes.
"""
