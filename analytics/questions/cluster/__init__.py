"""Whether a snapshot says what its cluster answered."""
