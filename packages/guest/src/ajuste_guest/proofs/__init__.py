"""Proofs of kernel features: evidence from the running kernel, never from its configuration."""
