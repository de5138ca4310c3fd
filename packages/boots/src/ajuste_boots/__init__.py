"""Reboots for an experiment: boot loaders that can boot once, what is on disk meanwhile, and how it all ends."""
