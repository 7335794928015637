"""What `restore` does."""
