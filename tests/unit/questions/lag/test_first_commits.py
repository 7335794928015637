"""Of a dump in which nothing was committed there is nothing to say, and no fault."""

from __future__ import annotations

import pyarrow as pa

from analytics.questions.lag.first_commits import BELOW_FIRST, with_first_commits


def test_no_rows_are_no_fault() -> None:
    rows = pa.schema(
        [
            ("group_id", pa.string()),
            ("topic", pa.string()),
            ("log_start_offset", pa.int64()),
            ("first_committed", pa.int64()),
            ("first_epoch", pa.int32()),
            ("has_gaps", pa.bool_()),
            ("is_other_log", pa.bool_()),
            ("reason", pa.string()),
        ]
    ).empty_table()
    lacking = pa.schema([("group_id", pa.string())]).empty_table()

    with_them = with_first_commits(rows, rows, lacking)

    assert with_them.num_rows == 0
    assert with_them.schema.field("offsets_below_first").type == pa.int64()


def test_a_partition_whose_offset_was_removed_shows_that_the_group_read_the_topic() -> None:
    seen = pa.Table.from_pylist(
        [
            {"group_id": "g", "topic": "t", "partition": 0, "first_epoch": 3},
            {"group_id": "g", "topic": "t", "partition": 1, "first_epoch": 7},
        ]
    )
    later = {
        **seen.to_pylist()[1],
        "log_start_offset": 0,
        "first_committed": 50,
        "has_gaps": False,
        "is_other_log": False,
        "reason": None,
    }
    lacking = pa.schema([("group_id", pa.string())]).empty_table()
    (row,) = with_first_commits(pa.Table.from_pylist([later]), seen, lacking).to_pylist()

    assert row["offsets_below_first"] == 50
    assert row["reason"] == BELOW_FIRST.format(0, 49)
