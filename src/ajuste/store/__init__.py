"""Runs, suites and trials in SQLite or PostgreSQL: layouts, checksums, salvage."""
