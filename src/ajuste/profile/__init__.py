"""Profiles: whole sets of settings, as tuned and sysctl.d have them, as tunables of the catalogue with levels."""
