"""A dump of a running cluster, taken by its own protocol: batches as fetched, and what it answers."""
