"""A study from plan to verdict."""
