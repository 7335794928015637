"""A dump of a running cluster, by its own protocol: batches as fetched, and what it answers."""
