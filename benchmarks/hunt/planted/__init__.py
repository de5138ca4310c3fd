"""Planted bugs that only an unlucky moment shows, each with a twin that is correct whatever the timing."""
