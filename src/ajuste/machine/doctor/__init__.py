"""How quiet a machine is: measured, judged, and what to do about it."""
