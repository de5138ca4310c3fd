"""Analysis of recorded trials: costs, decisions, and what explains a difference. Pure."""
