"""What `expiration` does."""
