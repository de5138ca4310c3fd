"""The gate: revisions of a project are built and measured side by side, and judged by limits."""
