"""What `lag` does."""
