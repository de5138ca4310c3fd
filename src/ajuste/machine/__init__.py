"""The machine itself: home, cache, files, units, inventory and doctor."""
