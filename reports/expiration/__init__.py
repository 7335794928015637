"""What `expiration` prints: per group first, then every offset, what went, and what if."""
