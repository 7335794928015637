"""Lag as it is shown: partitions, sums, and how statuses changed."""
