"""The machine itself: home, lock, cache, files, inventory and boot loaders."""
