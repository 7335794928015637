"""Of a dump in which nothing was committed there is nothing to say, and no fault."""

from __future__ import annotations

import pyarrow as pa

from analytics.evaluate.lag.first_commits import with_first_commits


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

    with_them = with_first_commits(rows, lacking)

    assert with_them.num_rows == 0
    assert with_them.schema.field("offsets_below_first").type == pa.int64()
