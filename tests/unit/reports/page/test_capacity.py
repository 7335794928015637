"""Capacity on a page: sums of all rows, rates of what is known, and no guess of a full disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.page.build import page_of
from reports.page.model import Subject
from tests.support.page_tables import workspace

GROUPS = ["billing", "shipping"]
INTERNAL = "__consumer_offsets"


def used(group: str | None, size: int | None, **columns: Any) -> dict[str, Any]:
    place = {"topic": INTERNAL, "partition": 0, "group_id": group}
    row = {"record_type": "offset_commit", "records": 2, "bytes": size, "live_bytes": 1}
    return {**place, **row, **columns}


def capacity(
    usage: Sequence[Mapping[str, Any]], committers: Sequence[Mapping[str, Any]]
) -> Subject:
    tables = {"topic_usage": usage, "committers": committers}
    subjects = page_of(workspace(GROUPS, [], tables)).subjects
    return next(each for each in subjects if each.anchor == "capacity")


def cells(subject: Subject, place: int) -> list[list[str]]:
    return [[each.text for each in row] for row in subject.grids[place].rows]


def test_bytes_of_a_type_are_those_of_all_groups_and_partitions() -> None:
    usage = [
        used("billing", 1000),
        used("shipping", 500, partition=1),
        used("billing", 9000, record_type="group_metadata"),
    ]
    types, _, held = (cells(capacity(usage, []), place) for place in range(3))
    assert [row[1:3] for row in types] == [
        ["group_metadata", "9.0 kB"],
        ["offset_commit", "1.5 kB"],
    ]
    assert [row[0] for row in held] == ["billing", "billing", "shipping"]


def test_bytes_that_archived_rows_do_not_tell_are_no_sum() -> None:
    known = used("billing", 1000, record_type="group_metadata")
    types = cells(capacity([known, used("billing", 1000), used("shipping", None)], []), 0)
    assert [row[1:3] for row in types] == [["group_metadata", "1.0 kB"], ["offset_commit", "-"]]


def test_the_rate_of_all_groups_is_a_bound_where_that_of_some_is_not_known() -> None:
    known = {"group_id": "billing", "bytes_per_day": 2000}
    unknown = {"group_id": "shipping", "bytes_per_day": None}
    assert capacity([], [known]).notes[0].startswith("Commits of 1 group take 2.0 kB a day")
    note = capacity([], [known, unknown]).notes[0]
    assert note.startswith("Commits of 1 group take at least 2.0 kB a day")
    assert note.endswith("; of 1 more group it cannot be told.")
    assert "cannot be told" in capacity([], [unknown]).notes[0]


def test_the_largest_writers_come_first_and_the_rest_is_counted() -> None:
    rows = [{"group_id": f"group-{n:02}", "bytes_per_day": n} for n in range(20)]
    subject = capacity([], rows)
    writers = subject.grids[1]
    assert [row[0].text for row in writers.rows][:2] == ["group-19", "group-18"]
    assert writers.more == "8 more in evaluations/committers"


def test_when_a_disk_is_full_is_not_guessed() -> None:
    (note,) = capacity([], []).notes
    assert note.startswith("When a disk is full cannot be told: one dump says neither how large")
    assert note.endswith("of two dumps of the same brokers, with --since and --disk.")
