"""Which rows are shown, and how they are laid out for people."""
