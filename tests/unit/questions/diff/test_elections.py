"""What the first state has from a line that the second lost: an election took it."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from analytics.questions.diff.changes import LOST_LINES, lost_lines, with_elections

OFFSETS = "__consumer_offsets"
ELECTED = datetime(2026, 11, 21, 9, 20, 36, tzinfo=UTC)
DIVERGENCES = [
    {
        "topic": topic,
        "partition": number,
        "copy": copy,
        "diverges_at": 100,
        "elected_at": elected,
        "groups_only_there": groups,
    }
    for topic, number, copy, elected, groups in (
        (OFFSETS, 9, "broker-1", ELECTED.isoformat(), ["night-audit"]),
        (OFFSETS, 9, "broker-4", None, None),
        (OFFSETS, 8, "broker-1", None, None),
        ("__share_group_state", 9, "broker-1", None, None),
    )
]
ROW = {
    **dict.fromkeys(("group_id", "change"), pl.String),
    **dict.fromkeys(("from_coordinator_partition", "to_coordinator_partition"), pl.Int32),
    **dict.fromkeys(("from_record_offset", "to_record_offset"), pl.Int64),
}


def test_only_the_lines_count_that_the_second_state_is_not_of() -> None:
    before = [(OFFSETS, 9, "broker-1"), (OFFSETS, 8, "broker-1")]
    found = lost_lines(DIVERGENCES, before, [(OFFSETS, 8, "broker-1")], OFFSETS)
    assert found.select("home", "copy", "elected_at").to_dicts() == [
        {"home": 9, "copy": "broker-1", "elected_at": ELECTED}
    ]
    assert lost_lines(DIVERGENCES, [], before, OFFSETS).equals(LOST_LINES.to_frame())


def cause(
    change: str,
    *,
    group: str = "billing",
    home: int = 9,
    old: int | None = None,
    new: int | None = None,
) -> str | None:
    rows = pl.DataFrame(
        {
            "group_id": [group],
            "change": [change],
            "from_coordinator_partition": [home if old is not None else None],
            "to_coordinator_partition": [home],
            "from_record_offset": [old],
            "to_record_offset": [new],
        },
        ROW,
    )
    lines = lost_lines(DIVERGENCES, [(OFFSETS, 9, "broker-1")], [], OFFSETS)
    (row,) = with_elections(rows, lines).to_dicts()
    assert (row["copy"], row["elected_at"]) == (
        ("broker-1", ELECTED) if row["cause"] else (None, None)
    )
    found: str | None = row["cause"]
    return found


def test_what_stood_on_the_lost_line_alone_was_lost_by_the_election() -> None:
    assert cause("went_back", old=100, new=140) == "lost_by_election"
    assert cause("vanished", old=180) == "lost_by_election"
    assert cause("changed", old=180, new=120) == "lost_by_election"
    assert cause("vanished", group="night-audit") == "lost_by_election"


def test_a_deletion_can_be_lost_too() -> None:
    assert cause("appeared", new=99) == "deletion_lost_by_election"
    assert cause("appeared", new=120) is None


def test_what_both_lines_have_or_another_partition_is_no_election() -> None:
    assert cause("went_back", old=99, new=140) is None
    assert cause("moved", old=180, new=190) is None
    assert cause("cannot_tell", old=180, new=120) is None
    assert cause("vanished", home=8, old=180) is None
