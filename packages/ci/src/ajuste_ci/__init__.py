"""Performance in CI: a gate between two revisions, the history of a project, and runs as regression tests."""
