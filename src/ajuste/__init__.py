"""Ajuste: an experiment lab for Linux configuration."""
