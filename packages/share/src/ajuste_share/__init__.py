"""Runs for others: as one file that another store takes and measures again, as a mail, and as pictures."""
