"""What `forensics` does."""
