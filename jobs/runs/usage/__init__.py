"""What `usage` does."""
