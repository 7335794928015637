"""Capacity on a page: sums of all rows, rates of what is known, and no guess of a full disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from reports.page.build import page_of
from reports.page.model import Subject
from tests.support.page_tables import AT, MANIFEST, workspace

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
    topics, types, _, held = (cells(capacity(usage, []), place) for place in range(4))
    assert [row[1:3] for row in types] == [
        ["group_metadata", "9.0 kB"],
        ["offset_commit", "1.5 kB"],
    ]
    assert [row[0] for row in held] == ["billing", "billing", "shipping"]
    assert [row[:2] for row in topics] == [[INTERNAL, "10.5 kB"]]


def test_bytes_that_archived_rows_do_not_tell_are_no_sum() -> None:
    known = used("billing", 1000, record_type="group_metadata")
    types = cells(capacity([known, used("billing", 1000), used("shipping", None)], []), 1)
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
    writers = subject.grids[2]
    assert [row[0].text for row in writers.rows][:2] == ["group-19", "group-18"]
    assert writers.more == "8 more in evaluations/committers"


def test_when_a_disk_is_full_is_not_guessed() -> None:
    (note,) = capacity([], []).notes
    assert note.startswith("When a disk is full cannot be told: one dump says neither how large")
    assert note.endswith("of the same brokers, and --disk-size tells it.")


def test_when_a_disk_is_full_is_said_where_an_earlier_audit_and_its_size_tell() -> None:
    full = {
        "cluster": "c",
        "as_of": AT,
        "copy": "broker-1",
        "file_bytes": 1000,
        "disk_bytes": 10_000,
        "bytes_per_day": 100,
        "full_at": AT + timedelta(days=90),
        "full_bound": "at_latest",
    }
    unknown = {**full, "copy": "broker-2", "full_at": None, "full_bound": "unknown"}
    tables = {
        "topic_usage": [],
        "committers": [],
        "trend_disks": [full, {**unknown, "reason": "nothing tells it"}],
    }
    page = page_of(workspace(GROUPS, [], tables))
    subject = next(each for each in page.subjects if each.anchor == "capacity")
    first, second = cells(subject, 0)
    assert first[:5] == ["broker-1", "1.0 kB", "10.0 kB", "100 B", "<= 2027-02-19T09:20:00.000Z"]
    assert (second[4], second[5]) == ("-", "nothing tells it")
    assert subject.notes[-1].startswith("A disk is full at the latest then")


def test_where_the_size_of_a_disk_is_told_and_no_rate_each_row_says_why() -> None:
    disk = {"cluster": "c", "as_of": AT, "copy": "broker-1", "disk_bytes": 10_000}
    row = {**disk, "file_bytes": 1000, "full_at": None, "reason": "there is one run of the cluster"}
    tables = {"topic_usage": [], "committers": [], "trend_disks": [row]}
    page = page_of(workspace(GROUPS, [], tables))
    subject = next(each for each in page.subjects if each.anchor == "capacity")
    assert cells(subject, 0)[0][-1] == "there is one run of the cluster"
    (note,) = subject.notes
    assert note.startswith("When a disk is full cannot be told here, of each for the reason")
    assert "neither how large" not in note
    assert note.endswith("an audit with --since, of an earlier one of the same brokers.")


def rates(usage: Sequence[Mapping[str, Any]], **partition: Any) -> dict[str, str]:
    """Bytes a day as the page shows them: of the topic, then of each record type."""
    row: Any = {**MANIFEST["partitions"][0], "complete_from": 0, **partition}
    tables = {"topic_usage": usage, "committers": []}
    page = page_of(workspace(GROUPS, [], tables, manifest={**MANIFEST, "partitions": [row]}))
    subject = next(each for each in page.subjects if each.anchor == "capacity")
    found = {}
    for grid in subject.grids[:2]:
        if "Bytes a day" in grid.heads:
            place = grid.heads.index("Bytes a day")
            found |= {row[int("type" in grid.anchor)].text: row[place].text for row in grid.rows}
    return found


def over(hours: float, **columns: Any) -> dict[str, Any]:
    return {"first_timestamp": AT, "last_timestamp": AT + timedelta(hours=hours), **columns}


def test_bytes_a_day_are_of_each_topic_and_record_type() -> None:
    usage = [
        used("billing", 1000, **over(2)),
        # It was there for as long as the topic was.
        used("billing", 600, **over(1, record_type="group_metadata")),
    ]
    assert rates(usage) == {
        INTERNAL: "~ 19.2 kB",
        "offset_commit": "~ 12.0 kB",
        "group_metadata": "~ 7.2 kB",
    }


def test_bytes_a_day_of_a_topic_that_was_cleaned_are_at_least_so_many() -> None:
    usage = [used("billing", 1000, **over(2))]
    assert set(rates(usage, complete_from=7).values()) == {">= 12.0 kB"}
    assert set(rates(usage, complete_from=None).values()) == {">= 12.0 kB"}


def test_what_lies_too_close_or_has_wrong_clocks_gives_no_rate() -> None:
    assert rates([used("billing", 1000, **over(0.01))]) == {}
    assert rates([used("billing", None, **over(2))]) == {}
    usage = [used("billing", 1000, **over(2))]
    assert rates(usage, clock_steps=[(3, 5, 1000)]) == {}
