"""What commits tell one after the other: how partitions move, and against which log ends."""
