"""In which order share groups and the state of their partitions came and went."""
