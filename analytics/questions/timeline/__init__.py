"""What happened to each offset of a group: losses, deletions, steps back, and what is unknown."""
