"""What `decode` does."""
