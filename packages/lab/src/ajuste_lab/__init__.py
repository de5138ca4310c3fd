"""The lab page: see, compare and start runs from a browser or a program."""
