"""What `replay` does, and what every question stands on."""
