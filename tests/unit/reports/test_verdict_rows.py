"""Verdicts as people read them: partitions are one row only where all that is shown is equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from analytics.tables.parted_table import PartedTable
from reports.answers.timeline import RAW, MergedVerdicts, merged, verdicts_for_people
from reports.layout.section import Section, heads_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def row(partition: int | None, minutes: int = 0, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(heads_of("offset_verdicts"))
    return empty | {
        "group_id": "billing",
        "topic": "orders",
        "partition": partition,
        "verdict": "expired",
        "at": NOON + timedelta(minutes=minutes),
        "not_before": None,
        "since": None,
        **more,
    }


def since(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def shown(rows: list[dict[str, Any]], *, is_wide: bool) -> Section:
    return verdicts_for_people(
        PartedTable.held(pa.Table.from_pylist(rows, RAW)), is_wide=is_wide
    ).short


def test_partitions_whose_verdicts_are_equal_are_one_row() -> None:
    (one,) = merged([row(0), row(1), row(3)])
    assert one["partitions"] == "0-1, 3"


def test_what_differs_in_anything_shown_is_a_row_of_its_own() -> None:
    rows = [row(0, cost=65), row(1, cost=65), row(2, cost=66), row(3, minutes=1, cost=65)]
    assert [(each["partitions"], each["cost"]) for each in merged(rows)] == [
        ("0-1", 65),
        ("2", 66),
        ("3", 65),
    ]


def test_was_became_and_cost_are_shown_and_times_are_printed() -> None:
    section = shown([row(0, was=180, became=5, cost=175)], is_wide=False)
    assert {"WAS", "BECAME", "COST"} <= set(section.heads.values())
    assert section.rows["at"].to_pylist() == ["2026-11-21T12:00:00.000Z"]


def test_a_time_that_is_only_bounded_has_its_sign() -> None:
    bounded = row(1, not_before=NOON - timedelta(minutes=1))
    section = shown([row(0), bounded], is_wide=False)
    assert section.rows["at"].to_pylist() == [
        "2026-11-21T12:00:00.000Z",
        "<= 2026-11-21T12:00:00.000Z",
    ]


def test_since_when_no_loss_is_found_is_said_of_a_whole_topic() -> None:
    rows = [
        row(number, verdict="no_loss_found", at=None, since=since(number)) for number in (0, 2, 1)
    ]
    (one,) = shown(rows, is_wide=False).rows.to_pylist()
    assert (one["partitions"], one["verdict"], one["at"]) == (
        *("0-2", "no loss found since 2026-11-21T12:02:00.000Z", None),
    )


def test_what_is_said_of_a_whole_group_is_not_said_of_its_partitions_again() -> None:
    whole = row(None, topic=None, verdict="cannot_tell", reason="records are lost")
    rows = [whole, row(0, verdict="cannot_tell", reason="records are lost"), row(1)]
    assert [each["partitions"] for each in merged(rows)] == ["", "1"]


class SomeAtATime(NamedTuple):
    rows: pa.Table
    most: int

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        wanted = self.rows if columns is None else self.rows.select(columns)
        yield wanted.slice(0, 0)
        for start in range(0, wanted.num_rows, self.most):
            yield wanted.slice(start, self.most)

    @property
    def num_rows(self) -> int:
        return int(self.rows.num_rows)

    def first(self, most: int) -> pa.Table:
        return self.rows.slice(0, most)

    def whole(self) -> pa.Table:
        return self.rows


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_verdicts_that_are_read_some_at_a_time_are_put_together_all_the_same(most: int) -> None:
    lost = "records are lost"
    rows = [
        *(row(number, group_id=name) for name in ("a", "b") for number in (0, 1, 3)),
        *(row(None, group_id=name, topic=None, verdict="cannot_tell", reason=lost) for name in "a"),
        *(row(number, group_id="a", verdict="cannot_tell", reason=lost) for number in (0, 1)),
        *(
            row(number, group_id=name, verdict="no_loss_found", at=None, since=since(number))
            for name in ("a", "b")
            for number in (0, 2, 1)
        ),
    ]
    table = pa.Table.from_pylist(rows, RAW)
    parted = MergedVerdicts(SomeAtATime(table, most), list(heads_of("offset_verdicts")))
    assert parted.whole().to_pylist() == merged(rows)
    assert parted.num_rows == len(merged(rows))
    assert parted.first(2).to_pylist() == merged(rows)[:2]


def test_records_are_shown_where_there_is_room_and_keep_partitions_apart() -> None:
    rows = [row(0, record="__consumer_offsets-9@7"), row(1, record="__consumer_offsets-9@8")]
    assert shown(rows, is_wide=False).rows["partitions"].to_pylist() == ["0-1"]
    wide = shown(rows, is_wide=True)
    assert "RECORD" in wide.heads.values()
    assert wide.rows["partitions"].to_pylist() == ["0", "1"]
