"""Generators and checks of the documents: generated pages, the terminal's picture, the words."""
