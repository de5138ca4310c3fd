"""Advice that proves itself: where a workload's time goes, which settings can matter, which do, and what is proved."""
