"""What `share` does."""
