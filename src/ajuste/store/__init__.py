"""Runs and trials in SQLite or PostgreSQL."""
