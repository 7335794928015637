"""How far share groups are behind, what holds them up, and what they have given up."""
