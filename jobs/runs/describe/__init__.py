"""What `describe` does."""
