"""What differs between two states: offsets, groups, members, share partitions. Arrow, no Spark."""
