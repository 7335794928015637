"""The fold of share state: share partitions and batches."""
