"""Runs, suites and trials in SQLite or PostgreSQL: tables, checksums, salvage."""
