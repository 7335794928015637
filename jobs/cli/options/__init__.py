"""Options of commands, each declared once, and how their values are read."""
