"""Commits: committed and pending offsets."""
