"""Whether one revision of a project is worse than another: both are built and measured side by side."""
