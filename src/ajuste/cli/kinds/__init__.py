"""The commands of further kinds of experiments, one file each: a function with the name of the file."""
