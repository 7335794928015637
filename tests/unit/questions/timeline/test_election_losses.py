"""What an election lost: what the lost line had, what became of it, and what it cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from analytics.questions.timeline.history import OffsetHistory
from analytics.questions.timeline.lost_commits import LAST, OTHER_TYPES, LostLine, last_on_line
from analytics.questions.timeline.offset_losses import election_losses as losses_on
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.commit_rows import COMMITS, MARKERS
from analytics.replay.offsets.effective_commits import ended_commits
from tests.support.offset_changes import HOME, PLACE, change, history, minute

ELECTION = minute(20)
DIVERGES_AT = 10


def line(offset: int | None, at: int = 15, copy: str = "broker-1") -> LostLine:
    last = dict(zip(("group_id", "topic", "partition"), PLACE, strict=True)) | {
        "committed_offset": offset,
        "record_offset": at,
        "timestamp": minute(at),
    }
    return LostLine(copy, HOME, DIVERGES_AT, 4, ELECTION, pl.DataFrame([last], LAST))


def election_losses(
    lines: list[LostLine], survivor: OffsetHistory, uncompacted_from: dict[int, int]
) -> list[dict[str, Any]]:
    return losses_on(lines, survivor, uncompacted_from).to_dicts()


def only(offset: int | None, *changes: dict[str, Any]) -> dict[str, Any]:
    (row,) = election_losses([line(offset)], history(*changes), {})
    return row


def told(row: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    return row["was"], row["became"], row["cost"]


def test_a_loss_is_a_loss_though_the_group_has_caught_up() -> None:
    row = only(180, change(5, 0), change(12, 5), change(13, 195))
    assert (row["verdict"], row["at"], row["confidence"]) == (
        *("lost_by_election", ELECTION, "high"),
    )
    assert told(row) == (180, 5, 175)
    assert row["record"] == f"__consumer_offsets-{HOME}@15"
    assert row["committed_at"] == minute(15)
    assert row["reason"] == (
        "only copy broker-1 has it (--prefer-copy broker-1); the surviving log had 0, and the next "
        "commit was 5"
    )


def test_an_election_whose_time_is_only_bounded_says_so() -> None:
    after = minute(18)
    lost = replace(line(180), elected_after=after)
    (row,) = election_losses([lost], history(change(5, 0)), {})
    assert (row["not_before"], row["at"]) == (after, ELECTION)
    (row,) = election_losses([line(180)], history(change(5, 0)), {})
    assert row["not_before"] is None


def test_a_commit_that_nothing_shows_as_acknowledged_may_never_have_been_answered() -> None:
    for below, confidence in ((15, "low"), (16, "high"), (0, "low"), (None, "high")):
        lost = replace(line(180, at=15), committed_below=below)
        (row,) = election_losses([lost], history(change(5, 0)), {})
        assert row["confidence"] == confidence
        assert ("ever acknowledged" in row["reason"]) is (confidence == "low")


def test_where_nobody_committed_again_it_became_what_the_surviving_line_had() -> None:
    assert told(only(140, change(5, 100))) == (140, 100, 40)


def test_an_offset_that_the_surviving_line_never_had_is_gone() -> None:
    assert told(only(140)) == (140, None, None)


def test_the_same_offset_on_both_lines_is_no_loss() -> None:
    assert election_losses([line(50)], history(change(5, 50), change(12, 70)), {}) == []


def test_a_member_that_kept_its_position_read_nothing_again() -> None:
    of_member = {"member_id": "m-1", "epoch": 4}
    row = only(140, change(5, 100, **of_member), change(12, 150, **of_member))
    assert told(row) == (140, 100, 0)
    assert row["reason"].endswith("the next commit was 150: the member kept its position")


def test_another_member_began_where_the_surviving_line_stood() -> None:
    changes = change(5, 100, member_id="m-1", epoch=4), change(12, 150, member_id="m-2", epoch=5)
    assert told(only(140, *changes)) == (140, 100, 40)


def test_what_was_read_before_an_unowned_commit_cannot_be_told() -> None:
    assert told(only(140, change(5, 100), change(12, 150))) == (140, 100, None)


def test_a_reset_that_was_lost_skips_records() -> None:
    assert told(only(60, change(5, 100))) == (60, 100, -40)


def test_a_deletion_that_was_lost_brings_the_offset_back() -> None:
    row = only(None, change(5, 21))
    assert told(row) == (None, 21, None)
    assert row["reason"].endswith("the offset came back")


def test_what_neither_line_has_was_not_lost() -> None:
    assert election_losses([line(None)], history(), {}) == []


def test_of_two_dead_copies_of_one_line_the_longer_one_counts() -> None:
    lines = [line(120, at=14, copy="broker-4"), line(140, at=15)]
    (row,) = election_losses(lines, history(change(5, 100)), {})
    assert row["was"] == 140


def test_what_lines_lack_makes_a_loss_uncertain() -> None:
    doubtful = replace(line(140), lacks="copy broker-1: __consumer_offsets-17 lacks offset 16")
    (row,) = election_losses([doubtful], history(change(5, 100)), {})
    assert (row["confidence"], row["cost"]) == ("low", None)
    assert row["reason"].endswith("lacks offset 16")


def test_a_group_that_was_of_another_type_there_is_said_to_be() -> None:
    other = replace(
        line(140), types=pl.DataFrame([("billing", "consumer")], OTHER_TYPES, orient="row")
    )
    (row,) = election_losses([other], history(change(5, 100)), {})
    assert row["reason"].endswith("on the lost line it is a consumer group")


def test_what_compaction_took_from_the_surviving_line_is_not_made_up() -> None:
    (row,) = election_losses([line(140)], history(change(30, 120)), {HOME: 25})
    assert told(row) == (140, 120, None)
    assert "what was in force after the election is no longer in the log" in row["reason"]


def test_what_came_after_a_line_that_was_lost_may_have_been_lost_too() -> None:
    later = replace(line(160, at=40, copy="broker-2"), leader_epoch=6, diverges_at=30)
    first, second = election_losses([line(140), later], history(change(5, 100)), {})
    assert (told(first), told(second)) == ((140, 100, None), (160, 100, 60))
    assert first["reason"].endswith("and what came next was lost, too")


def test_a_line_of_another_topic_of_the_name_went_with_it() -> None:
    other = replace(line(140), other_topic="vIB_tJT3R_6WKBINnepBgQ")
    (row,) = election_losses([other], history(change(5, 100)), {})
    assert row["verdict"] == "lost_with_offsets_topic"
    assert row["reason"].endswith("that copy is of topic id vIB_tJT3R_6WKBINnepBgQ")


def records(*rows: tuple[int, int | None, int]) -> pl.DataFrame:
    """Return commits of one place: offset of the record, offset committed, producer (-1: none)."""
    place = dict(zip(("group_id", "topic", "partition"), PLACE, strict=True))
    said = [
        place
        | {"coordinator_partition": HOME, "record_offset": at, "committed_offset": offset}
        | {
            "is_tombstone": offset is None,
            "producer_id": producer,
            "is_transactional": producer > 0,
        }
        for at, offset, producer in rows
    ]
    return pl.DataFrame(said, COMMITS)


@pytest.mark.parametrize(
    ("rows", "ends", "last"),
    [
        ([(10, 7, -1), (11, 8, -1)], [], [8]),
        ([(10, 7, -1), (11, None, -1)], [], [None]),
        ([(10, 7, -1), (11, 8, 5)], [], [7]),
        ([(10, 7, -1), (11, 8, 5)], [(12, "ABORT")], [7]),
        ([(10, 7, -1), (11, 8, 5)], [(12, "COMMIT")], [8]),
        # What was pending where lines part took effect on the line; what was not is none of it.
        ([(3, 7, 5)], [(12, "COMMIT")], [7]),
        ([(3, 7, 5), (4, 8, 5)], [(6, "COMMIT"), (12, "COMMIT")], []),
        # A commit that was written later goes before a transaction that ended later.
        ([(10, 7, 5), (11, 8, -1)], [(12, "COMMIT")], [8]),
    ],
)
def test_what_a_line_had_last(
    rows: list[tuple[int, int | None, int]], ends: list[tuple[int, str]], last: list[int | None]
) -> None:
    markers = [
        {"coordinator_partition": HOME, "producer_id": 5, "end_offset": at, "outcome": word}
        for at, word in ends
    ]
    for release in ("3.9", "4.3"):
        ended = ended_commits(records(*rows), pl.DataFrame(markers, MARKERS), replay_rules(release))
        assert last_on_line(ended, DIVERGES_AT)["committed_offset"].to_list() == last
