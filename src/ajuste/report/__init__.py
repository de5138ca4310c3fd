"""Reports for people: in the terminal, as HTML and as Markdown, from the same results."""
