"""What is said of an offset that went back: the owner of its partition is not who committed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.replay.history.offset_life_events import offset_events_of_groups
from schemas import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_of_a_step_back_the_owner_is_named_as_owner(spark: SparkSession) -> None:
    """In a group of 3.9.2 a member committed for partitions of another, and was not told apart."""
    back = {"group_id": "fleet", "topic": "sensors", "event": "commit", "advance": -4}
    back |= {"previous_offset": 50, "committed_offset": 46, "coordinator_partition": 3}
    why = {"cause": "rewound_by_member", "confidence": "high"}
    rows = [
        back | why | {"partition": 0, "record_offset": 7, "member_id": "truck-0"},
        back | why | {"partition": 1, "record_offset": 8, "member_id": None},
        back | {"partition": 2, "record_offset": 9, "event": "transaction_abort"},
    ]
    rows = [row | {"effective_offset": row["record_offset"]} for row in rows]
    history = spark.createDataFrame(rows, table("offset_history").ddl(not_null=False))
    told = offset_events_of_groups(history).where("event is not null").collect()
    assert {(row.event, row.subject, row.detail) for row in told} == {
        (
            "offset_rewound",
            "sensors-0",
            "from 50 to 46; rewound by member (high confidence); owned by truck-0",
        ),
        ("offset_rewound", "sensors-1", "from 50 to 46; rewound by member (high confidence)"),
    }
