"""Raw records of a chunk to Arrow batches, one per table."""
