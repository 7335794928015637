"""Live commits that have expired, counted where that was evaluated."""

from __future__ import annotations

from analytics.contracts import polars_rows, table_of
from analytics.questions.usage.key_usage import with_expired
from schemas import table


def test_due_overdue_and_blocked_offsets_are_expired() -> None:
    nothing = dict.fromkeys(each.name for each in table("topic_usage").columns)
    rows = [
        {**nothing, "topic": topic, "partition": partition, "group_id": group, "record_type": kind}
        for topic, partition, group, kind in (
            ("__consumer_offsets", 3, "a", "offset_commit"),
            ("__consumer_offsets", 3, "a", "group_metadata"),
            ("__consumer_offsets", 4, "b", "offset_commit"),
            ("__consumer_offsets", 3, None, "control_markers"),
        )
    ]
    usage = polars_rows(table_of("topic_usage", rows).drop_columns(["expired_records"]))
    nothing = dict.fromkeys(each.name for each in table("offset_expiration").columns)
    statuses = ["due", "overdue", "blocked", "scheduled", "protected", "cannot_tell"]
    expiration = table_of(
        "offset_expiration",
        [
            {**nothing, "group_id": "a", "coordinator_partition": 3, "status": status}
            for status in statuses
        ],
    )

    expired = with_expired(usage, polars_rows(expiration)).sort("partition", "record_type")
    names = ["partition", "record_type", "expired_records"]
    assert expired.select(names).rows() == [
        (3, "control_markers", None),
        (3, "group_metadata", None),
        (3, "offset_commit", 3),
        (4, "offset_commit", 0),
    ]
    assert with_expired(usage, None)["expired_records"].to_list() == [None] * 4
