"""What fills the internal topics, who writes it, and whether the cleaner keeps up."""
