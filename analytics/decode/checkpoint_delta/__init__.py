"""Share state that lies in data partitions as SHARE_CHECKPOINT and SHARE_DELTA, to columns."""
