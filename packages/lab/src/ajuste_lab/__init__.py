"""The lab page: what is measured and kept, to look at, compare and start from a browser or a program."""
