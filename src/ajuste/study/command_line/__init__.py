"""A study from the words of a command line: ``ajuste compare``."""
