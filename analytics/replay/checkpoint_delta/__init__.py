"""Share state of checkpoints and deltas in data partitions: what a leader would recover."""
