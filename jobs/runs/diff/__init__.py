"""What `diff` does."""
