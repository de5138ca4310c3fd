"""This machine: home, lock, cache, files, inventory, doctor and boot loaders."""
