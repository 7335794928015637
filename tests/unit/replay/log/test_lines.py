"""An instant is answered by the line that was then in force; where none is known, it is said."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from analytics.replay.dump.followed_lines import FollowedLine, Piece, lines_at

OFFSETS = "__consumer_offsets"


def at(minute: int, second: int = 0) -> datetime:
    return datetime(2026, 11, 21, 9, minute, second, tzinfo=UTC)


def said(minute: int, second: int = 0) -> str:
    return at(minute, second).isoformat()


# From 9:17 on broker-1 alone leads; it dies at 9:20, and broker-2 is elected at 9:21.
KNOWN: dict[str, Any] = {
    "topic": OFFSETS,
    "partition": 9,
    "copy": "broker-1",
    "diverges_at": 245,
    "end_offset": 445,
    "lost_from_timestamp": said(17),
    "lost_to_timestamp": said(18),
    "lost_leader_epoch": 1,
    "surviving_copy": "broker-2",
    "elected_at": said(21),
    "election_shown_by": "metadata_log",
    "leaderless_from": said(20),
    "unclean": True,
    "high_watermark": 445,
    "pieces": [{"line": "broker-1", "first_offset": 245}],
}
# The same without the metadata log: the first record of broker-2 is of 9:22.
BOUNDED = KNOWN | {
    "elected_at": said(22),
    "election_shown_by": "first_record",
    "leaderless_from": None,
    "unclean": None,
}


def followed(divergence: dict[str, Any], when: datetime | None) -> str | None:
    """Return whether the lost line's leader led; None where the surviving line answers."""
    found = lines_at([divergence], when)
    return found[0].at_that_time if found else None


@pytest.mark.parametrize(
    ("when", "known", "bounded"),
    [
        (at(16, 59), None, None),
        (at(17), "led", "led"),
        (at(18), "led", "led"),
        (at(18, 1), "led", "cannot tell"),
        (at(19, 59), "led", "cannot tell"),
        (at(20), "nobody led", "cannot tell"),
        (at(20, 59), "nobody led", "cannot tell"),
        (at(21), None, "cannot tell"),
        (at(21, 59), None, "cannot tell"),
        (at(22), None, None),
        (None, None, None),
    ],
)
def test_less_evidence_never_makes_another_sure_answer(
    when: datetime | None, known: str | None, bounded: str | None
) -> None:
    assert followed(KNOWN, when) == known
    assert followed(BOUNDED, when) == bounded


def test_a_lost_line_without_successor_is_followed_up_to_the_end_of_the_dump() -> None:
    ended = BOUNDED | {"elected_at": None, "election_shown_by": None}
    assert followed(ended, at(18)) == "led"
    assert followed(ended, at(59)) == "cannot tell"
    assert followed(ended, None) is None


def test_what_was_never_committed_was_never_in_force() -> None:
    # A clean election: the new leader had all that was committed.
    assert followed(KNOWN | {"unclean": False}, at(17, 30)) is None
    # Raft loses nothing that a majority had.
    assert followed(KNOWN | {"topic": "__cluster_metadata"}, at(17, 30)) is None
    # Nothing shows whether what the old leader had was committed.
    for mark in (None, 300):
        assert followed(BOUNDED | {"high_watermark": mark}, at(17, 30)) == "cannot tell"


def test_of_several_lost_lines_the_one_answers_whose_leader_then_led() -> None:
    later = KNOWN | {
        "copy": "broker-3",
        "lost_leader_epoch": 3,
        "lost_from_timestamp": said(23),
        "lost_to_timestamp": said(24),
        "elected_at": said(30),
        "leaderless_from": None,
        "diverges_at": 245,
    }

    def line(when: datetime, first: dict[str, Any]) -> str | None:
        found = lines_at([later, first], when)
        return found[0].copy if found else None

    assert line(at(17), KNOWN) == "broker-1"
    assert line(at(20, 30), KNOWN) == "broker-1"
    assert line(at(21), KNOWN) is None
    assert line(at(23), KNOWN) == "broker-3"
    assert line(at(30), KNOWN) is None
    # Without the metadata log the first record of the later lost line ends the earlier one.
    late = BOUNDED | {"elected_at": said(31)}
    assert line(at(22, 59), late) == "broker-1"
    assert line(at(23), late) == "broker-3"


def test_a_line_says_where_its_records_are() -> None:
    shared = KNOWN | {
        "copy": "broker-4",
        "pieces": [
            {"line": "broker-1", "first_offset": 245},
            {"line": "broker-4", "first_offset": 300},
        ],
    }
    assert lines_at([shared], at(18)) == (
        FollowedLine(
            topic=OFFSETS,
            partition=9,
            copy="broker-4",
            diverges_at=245,
            pieces=(Piece("broker-1", 245, 300), Piece("broker-4", 300, None)),
            surviving_copy="broker-2",
            elected_at=at(21),
            at_that_time="led",
        ),
    )
