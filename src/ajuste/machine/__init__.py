"""This machine: home, lock, cache, files, inventory and doctor."""
