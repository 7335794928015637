"""What is true of the query of `tests.brokers.spark_query`, by what was done."""

from __future__ import annotations

PLAN = {
    ("orders", 0): (15, "ahead", 2, "readable"),
    ("orders", 1): (15, "equal", 0, "readable"),
    ("orders", 2): (15, "behind", -15, "readable"),
    ("orders", 3): (15, "no_commit", None, "readable"),
    ("returns", 0): (15, "no_commit", None, "other_topic"),
}
"""By partition: where the query goes on, what the group's commit is against it and by how much, and
what the log has: two lots of ten and five records were read, two more are there, and one topic was
deleted and made again."""
