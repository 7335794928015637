"""What the command line itself is made of."""
