"""The doctor: how quiet a machine is, what disturbs measurements there, and what to do."""
