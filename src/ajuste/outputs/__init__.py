"""Output of programs: one module per program, for live output and files alike."""
