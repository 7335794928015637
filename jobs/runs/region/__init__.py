"""What `region` does."""
