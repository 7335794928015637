"""Our own word for a partition: what is not known is not told as what is not so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from analytics.questions.lag.table import LOSS_IS_UNKNOWN, verdict
from schemas.evaluation_rules import lag_rules

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
JUST, LONG_AGO = NOW - timedelta(seconds=30), NOW - timedelta(days=2)
TIME = pa.timestamp("us", "UTC")
OWNERS = pa.list_(pa.struct([("member_id", pa.string())]))
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "member_id")),
        ("owners", OWNERS),
        *((name, pa.bool_()) for name in ("complete", "is_other_log")),
        *((name, pa.int64()) for name in ("lag", "log_start_offset", "committed_offset")),
        *((name, pa.int64()) for name in ("lost_offsets", "offsets_below_start")),
        *((name, pa.int64()) for name in ("offsets_beyond_end", "commits")),
        *((name, TIME) for name in ("last_commit_at", "last_advance_at")),
    ]
)
OWNED = {
    "kind": "committed", "member_id": "m1", "complete": True, "is_other_log": False, "lag": 40,
    "log_start_offset": 5, "committed_offset": 60, "lost_offsets": 0, "offsets_below_start": 0,
    "offsets_beyond_end": 0, "owners": [{"member_id": "m1"}], "commits": 9,
    "last_commit_at": JUST, "last_advance_at": LONG_AGO,
}  # fmt: skip
UNKNOWN_START = {"log_start_offset": None, "lost_offsets": None, "offsets_below_start": None}


def told(**more: Any) -> tuple[str, bool]:
    rows = pl.DataFrame(pa.Table.from_pylist([OWNED | more], SCHEMA))
    word = verdict(lag_rules(), NOW)
    found: tuple[str, bool] = rows.select(word, LOSS_IS_UNKNOWN.alias("is_unknown")).row(0)
    return found


def test_commits_without_progress_are_several() -> None:
    assert told() == ("commits_without_progress", False)
    assert told(commits=2) == ("commits_without_progress", False)
    assert told(commits=1, last_advance_at=None) == ("behind", False)
    assert told(commits=1, last_commit_at=LONG_AGO, last_advance_at=None) == ("silent", False)


@pytest.mark.parametrize("more", [{}, {"kind": "stale"}, {"kind": "stale", "lag": None}])
def test_where_a_log_starts_is_not_0_because_it_is_unknown(more: dict[str, Any]) -> None:
    """Retention may have taken what is next, which would be worse than what is seen."""
    assert told(**more, **UNKNOWN_START) == ("cannot_tell", True)


def test_what_is_read_to_the_end_of_its_log_has_lost_nothing_wherever_that_starts() -> None:
    assert told(lag=0, **UNKNOWN_START) == ("caught_up", False)
    assert told(lag=None, **UNKNOWN_START, last_advance_at=JUST) == ("moving", False)
