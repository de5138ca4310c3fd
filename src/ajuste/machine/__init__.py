"""The machine itself: home, lock, cache, files, units and inventory."""
