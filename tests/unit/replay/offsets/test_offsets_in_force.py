"""Rows read by the names of decoded fields mean what rows of the whole table mean."""

from __future__ import annotations

import polars as pl

from analytics.replay.offsets.commit_rows import COMMITS, with_offsets_in_force


def test_what_is_below_0_is_no_committed_offset_wherever_commits_are_read_from() -> None:
    stored = [7, 0, -1, -1001, None]
    columns = {name: COMMITS[name] for name in ("committed_offset", "stored_offset")}
    rows = pl.DataFrame(dict.fromkeys(columns, stored), schema=columns)

    meant = with_offsets_in_force(rows)

    assert meant["committed_offset"].to_list() == [7, 0, None, None, None]
    assert meant["stored_offset"].to_list() == stored
