"""How far behind groups are, what they have lost, and whether they move."""
