"""Transfer: whether the answers of guests are those of the host."""
