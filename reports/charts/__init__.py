"""Charts of the page, one a file: rows in, SVG out."""
