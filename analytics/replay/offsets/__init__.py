"""Commits: which take effect and when, what they replace; committed and pending offsets."""
