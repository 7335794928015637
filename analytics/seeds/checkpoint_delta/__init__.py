"""Share state in data partitions, as checkpoints and deltas: what a leader would recover."""
