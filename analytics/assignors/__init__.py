"""Kafka's partition assignors as pure functions: members and partitions in, assignment out.

`registry.assign` is the door; `group` says what goes in. Nothing here imports Spark, Arrow or
pandas, so `groupscope assign` answers at once.
"""
