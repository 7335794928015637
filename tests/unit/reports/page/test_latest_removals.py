"""The page shows the latest of removals, of which there may be more than can be held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa

from analytics.contracts import table_of
from reports.page.subjects.offsets import removals
from reports.page.workspace_tables import Condition, HeldTables, WorkspaceTables, fulfilling
from schemas import table

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
COUNT = 1_200
COLUMNS = dict.fromkeys(each.name for each in table("offset_removals").columns)


class InPieces(HeldTables):
    """Tables that are read in pieces alone, in any order."""

    def read(
        self,
        name: str,
        columns: Sequence[str],  # noqa: ARG002
        where: Condition | None = None,  # noqa: ARG002
    ) -> pa.Table:
        raise AssertionError(f"{name} is read whole")

    def pieces(
        self, name: str, columns: Sequence[str], where: Condition | None = None
    ) -> Iterator[pa.Table]:
        rows = self[name] if where is None else fulfilling(self[name], where)
        rows = rows.select(list(columns))
        places = list(range(rows.num_rows))
        Random(3).shuffle(places)
        for start in range(0, rows.num_rows, 100):
            yield rows.take(places[start : start + 100])


def removal(number: int) -> dict[str, Any]:
    """One a second but for pairs at once, and every hundredth without a time."""
    at = None if number % 100 == 0 else NOON + timedelta(seconds=number // 2)
    return {
        **COLUMNS,
        "group_id": "g",
        "topic": "t",
        "partition": number,
        "removed_at": at,
        "cause": "expiration" if number < COUNT - 1 else "topic_deleted",
        "confidence": "high",
        "verdict": "on_time",
        "coordinator_partition": 1,
        "record_offset": number,
    }


def test_the_latest_removals_are_shown_whatever_pieces_they_are_read_in() -> None:
    rows = table_of("offset_removals", [removal(number) for number in range(COUNT)])
    read = WorkspaceTables(InPieces({"offset_removals": rows}), {}, {})
    shown = removals(read, frozenset())
    assert shown is not None
    (grid,) = shown.grids
    place = grid.heads.index("Partition")
    # Of those at once the first record is first.
    newest = [COUNT - 2, COUNT - 1, COUNT - 4, COUNT - 3]
    assert [row[place].text for row in grid.rows[:4]] == list(map(str, newest))
    assert (len(grid.rows), grid.more) == (20, "1,180 more in evaluations/offset_removals")
    (drawn,) = shown.figures
    assert "The latest is of g, at 2026-11-21T12:09:59" in drawn.says
    assert not shown.notes
    held = WorkspaceTables(HeldTables({"offset_removals": rows}), {}, {})
    assert removals(held, frozenset()) == shown


def test_a_dump_in_which_nothing_was_removed_says_so() -> None:
    nothing = table_of("offset_removals", [])
    shown = removals(WorkspaceTables(HeldTables({"offset_removals": nothing}), {}, {}), frozenset())
    assert shown is not None
    assert shown.notes == ("No committed offset was removed in this dump.",)
    assert not shown.figures
