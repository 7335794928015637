"""Burrow's verdicts on partitions, by the commits that it would remember."""
