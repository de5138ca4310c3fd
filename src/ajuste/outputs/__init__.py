"""What programs print: one module per program, for live output and files alike."""
