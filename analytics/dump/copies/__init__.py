"""Several brokers, one truth: epochs, comparison, union, the plan of what is read."""
