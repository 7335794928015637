"""The command `rebalances`: what it reads, and what it says."""
