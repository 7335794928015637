"""Of a dump in which nothing was committed there is nothing to say, and no fault."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from analytics.questions.lag.offsets import LACKING, with_first_commits


def test_no_rows_are_no_fault() -> None:
    rows = pl.DataFrame(
        pa.schema(
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
    )
    lacking = pl.DataFrame(schema=LACKING)

    with_them = with_first_commits(rows, rows, lacking)

    assert with_them.height == 0
    assert with_them.schema["offsets_below_first"] == pl.Int64


def test_a_partition_whose_offset_was_removed_shows_that_the_group_read_the_topic() -> None:
    seen = pl.DataFrame(
        [
            {"group_id": "g", "topic": "t", "partition": 0, "first_epoch": 3},
            {"group_id": "g", "topic": "t", "partition": 1, "first_epoch": 7},
        ]
    )
    later = {
        **seen.to_dicts()[1],
        "log_start_offset": 0,
        "first_committed": 50,
        "has_gaps": False,
        "is_other_log": False,
        "reason": None,
    }
    lacking = pl.DataFrame(schema=LACKING)
    (row,) = with_first_commits(pl.DataFrame([later]), seen, lacking).to_dicts()

    assert row["offsets_below_first"] == 50
    assert row["reason"].startswith("of offsets 0 to 49 at most it never committed any")
