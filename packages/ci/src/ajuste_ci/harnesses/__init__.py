"""Benchmark harnesses of projects: how each lists its benchmarks, and runs one of them a fixed number of times."""
