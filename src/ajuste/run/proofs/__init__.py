"""Evidence that a kernel has what it claims: read from the kernel while it runs, never from its configuration."""
