"""Experiments on many machines: a cluster, the order in which they begin, and what holds of machines like them."""
