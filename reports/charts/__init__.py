"""Charts of the page, a subject a file: rows in, SVG out."""
