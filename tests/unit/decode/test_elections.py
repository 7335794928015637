"""When a lost line ended: the metadata log's word goes before that of the new leader's records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.decode.elections import Leadership, leaderships, with_election
from analytics.dump.files.model import FIRST_RECORD, METADATA_LOG, Divergence

OLD, NEW = 1, 2
"""Node ids of the leaders of the lost line and of the surviving one."""

LOST = Divergence(
    topic="__consumer_offsets",
    partition=9,
    copy="broker-1",
    diverges_at=245,
    end_offset=445,
    lost_records=200,
    lost_from_timestamp=1_000,
    lost_to_timestamp=2_000,
    lost_leader_epoch=1,
    surviving_leader_epoch=3,
    surviving_copy="broker-2",
    elected_at=9_000,
    election_shown_by=FIRST_RECORD,
)
EPOCHS = [
    Leadership(0, OLD, 10),
    Leadership(1, OLD, 900),
    Leadership(2, -1, 3_000),
    Leadership(3, NEW, 4_000, is_unclean=True),
    Leadership(4, OLD, 8_000),
]


def test_the_election_is_when_another_leader_follows_that_of_the_lost_line() -> None:
    found = with_election(LOST, EPOCHS, OLD)
    assert (found.elected_at, found.election_shown_by) == (4_000, METADATA_LOG)
    assert (found.leaderless_from, found.unclean) == (3_000, True)


def test_a_leader_that_comes_back_before_anybody_else_goes_on_with_its_line() -> None:
    epochs = [*EPOCHS[:3], Leadership(3, OLD, 3_500), Leadership(4, NEW, 4_000)]
    found = with_election(LOST, epochs, OLD)
    assert (found.elected_at, found.leaderless_from, found.unclean) == (4_000, None, False)


def test_what_the_metadata_log_no_longer_shows_is_left_as_it_was() -> None:
    hidden = [*EPOCHS[:2], replace(EPOCHS[3], since=None)]
    for epochs in ([], EPOCHS[2:], hidden, EPOCHS[:2]):
        assert with_election(LOST, epochs, OLD) == LOST
    unknown = replace(LOST, lost_leader_epoch=None)
    assert with_election(unknown, EPOCHS, OLD) == unknown


def record(offset: int, segment: str = "00000000000000000000.log", **value: Any) -> dict[str, Any]:
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=offset)
    said = {"leader": -2, "leader_recovery_state": -1} | value
    return {"offset": offset, "timestamp": when, "segment": segment, "value": said}


def changes() -> Iterator[dict[str, Any]]:
    yield record(10, leader=1, leader_epoch=0, leader_recovery_state=0)
    yield record(20)  # the ISR shrinks
    yield record(30, leader=-1)
    yield record(40, leader=3, leader_recovery_state=1)


def test_a_leader_epoch_grows_with_every_change_that_names_a_leader() -> None:
    assert list(leaderships(reversed(list(changes())))) == [
        Leadership(0, 1, 10),
        Leadership(1, -1, 30),
        Leadership(2, 3, 40, is_unclean=True),
    ]


def test_a_snapshot_does_not_say_when_its_leaders_were_elected() -> None:
    snapshot = "__cluster_metadata-0/00000000000000000035-0000000002.checkpoint"
    taken = record(0, snapshot, leader=-1, leader_epoch=1, leader_recovery_state=0)
    late = [each for each in changes() if each["offset"] > 35]
    assert list(leaderships([*late, taken])) == [
        Leadership(1, -1, None),
        Leadership(2, 3, 40, is_unclean=True),
    ]
    # Where the log goes further back than the snapshot, it tells all.
    assert list(leaderships([taken, *changes()])) == list(leaderships(changes()))
