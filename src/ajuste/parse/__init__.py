"""What programs print, as metrics: one file for each program."""
