"""What rules of the kernel predict, beside what was measured: one file a rule."""
