"""What agents and other programs may ask of the lab, and within which limits."""
