"""Analysis, from trials to verdicts: effects, anytime-valid intervals, equivalence, the answer.

Pure: no files, clocks or processes.
"""
