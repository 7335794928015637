"""What `balance` prints: how even each group is, what other assignors would give, placement."""
