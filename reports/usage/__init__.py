"""What fills the internal topics, as it is shown."""
