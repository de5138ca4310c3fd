"""Benchmark programs as workloads: a catalogue of them, and readers of their output."""
