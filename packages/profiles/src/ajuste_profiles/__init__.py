"""Profiles: whole sets of settings, of tuned and sysctl.d, as tunables with levels; and all export formats."""
