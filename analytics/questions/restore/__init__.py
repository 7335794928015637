"""Which committed offsets of the past can be given back, and why others cannot. Arrow, no Spark."""
