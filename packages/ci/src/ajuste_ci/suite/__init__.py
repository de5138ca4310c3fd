"""Suites: several workloads as one experiment over the same configurations."""
