"""What the documents are made of and checked by: generated pages, the terminal's picture, the words."""
