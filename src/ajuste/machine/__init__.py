"""The machine itself: home, lock, cache, files, inventory, doctor and boot loaders."""
