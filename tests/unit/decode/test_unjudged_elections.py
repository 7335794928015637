"""Which elections of coordinators may have lost commits that nothing in the dump shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from analytics.decode.unjudged_elections import (
    Copy,
    Election,
    Evidence,
    Unjudged,
    elections_of,
    with_unjudged_elections,
)
from analytics.dump.copies.leadership import NOBODY, Leadership, Registered
from tests.support.offset_changes import minute

CLEAN = Election(0, 1, minute(0))
NONE_LEADS = Election(1, None, minute(1))
UNCLEAN = Election(2, 2, minute(2), takes_over_from=1)
ELECTIONS = (CLEAN, NONE_LEADS, UNCLEAN)
EPOCHS: dict[int, datetime | None] = {0: minute(0), 2: minute(3)}
SURVIVOR = Copy(2, 2)


def untold(**evidence: Any) -> tuple[datetime | None, str] | None:
    found = Evidence(
        **{"elections": ELECTIONS, "epochs": EPOCHS, "copies": [SURVIVOR], **evidence}
    ).unjudged()
    return None if found is None else (found.at, found.reason)


def test_without_the_log_of_the_leader_before_nothing_tells_what_was_lost() -> None:
    at, reason = untold() or (None, "")
    assert at == minute(2)
    assert reason.endswith("the log of broker 1, the leader before, is not in the dump")


def test_the_log_of_the_leader_before_tells() -> None:
    assert untold(copies=[SURVIVOR, Copy(1, 0)]) is None
    assert untold(copies=[SURVIVOR], lost=[(0, 2)]) is None


def test_a_log_that_followed_the_new_leader_was_cut_back() -> None:
    _, reason = untold(copies=[SURVIVOR, Copy(1, 2)]) or (None, "")
    assert "was cut back to the new leader's afterwards" in reason


def test_a_log_of_the_leader_before_that_lacks_records_does_not_tell_all() -> None:
    copies = [SURVIVOR, Copy(1, 0, "__consumer_offsets-9 lacks all from offset 7 on")]
    _, reason = untold(copies=copies, lost=[(0, 2)]) or (None, "")
    assert reason.endswith("the leader before, __consumer_offsets-9 lacks all from offset 7 on")


def test_clean_elections_lose_nothing() -> None:
    assert untold(elections=(CLEAN, NONE_LEADS, Election(2, 2, minute(2)))) is None


def test_one_replica_cannot_lose_by_election() -> None:
    assert untold(is_replicated=False) is None


def test_without_a_metadata_log_any_change_of_the_leader_may_have_been_unclean() -> None:
    at, reason = untold(elections=()) or (None, "")
    assert at == minute(3)
    assert reason.endswith("the dump has no metadata log")
    assert untold(elections=(), epochs={0: minute(0)}) is None
    assert untold(elections=(), lost=[(0, 2)]) is None


def test_records_without_leader_epochs_tell_of_no_election() -> None:
    at, reason = untold(elections=(), epochs=None) or (minute(9), "")
    assert at is None
    assert reason.endswith("no leader epochs are recorded")


def test_what_was_before_or_after_the_metadata_log_it_does_not_tell() -> None:
    begins_later = (Election(2, 2, None), Election(3, 2, minute(5)))
    assert untold(elections=begins_later) is not None
    ends_earlier = untold(elections=(CLEAN,))
    assert ends_earlier is not None
    assert ends_earlier[0] == minute(3)


def test_every_election_is_named_that_may_have_lost_commits() -> None:
    later = Election(4, 1, minute(8), takes_over_from=2)
    evidence = Evidence(
        elections=(*ELECTIONS, later), epochs={**EPOCHS, 4: None, 5: None}, copies=[Copy(3, 5)]
    )
    assert [each.leader_epoch for each in evidence.every_unjudged()] == [2, 4, 5]
    last = evidence.unjudged()
    assert last is not None
    assert last.leader_epoch == 5


def manifest(epochs: list[tuple[int, int]], **more: Any) -> dict[str, Any]:
    row = {
        "topic": "__consumer_offsets",
        "partition": 7,
        "copy": "broker-2",
        "first_offset": 0,
        "end_offset": 90,
        "leader_epochs": [{"epoch": epoch, "first_offset": first} for epoch, first in epochs],
    }
    copies = [{"name": "broker-2", "node_id": 2}]
    return {"partitions": [row], "copies": copies, "divergences": [], **more}


def named(told: Registered | None, epochs: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
    registered = {} if told is None else {("__consumer_offsets", 7): told}
    (row,) = with_unjudged_elections(manifest(epochs), registered)["partitions"]
    names = ("leader_epoch", "at", "first_offset")
    return [tuple(each[name] for name in names) for each in row["unjudged_elections"]]


def test_a_manifest_names_elections_with_the_first_offset_of_the_new_leader() -> None:
    at = minute(3).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert named(Registered(LED, 3), [(0, 0), (2, 60)]) == [(2, at, 60)]
    assert named(Registered(LED, 3), [(0, 0)]) == [(2, at, 90)]
    assert named(Registered(LED, 1), [(0, 0), (2, 60)]) == []
    assert named(None, [(0, 0), (2, 60)]) == [(2, None, 60)]
    assert named(None, [(0, 0)]) == []
    assert named(None, []) == [(None, None, 0)]


def led(epoch: int, leader: int, at: int, *, unclean: bool = False) -> Leadership:
    return Leadership(epoch, leader, int(minute(at).timestamp() * 1000), unclean)


LED = (led(0, 1, 0), led(1, NOBODY, 2), led(2, 2, 3, unclean=True))


def test_an_unclean_leader_takes_over_from_the_last_one() -> None:
    found = elections_of(LED)
    assert [(each.leader_epoch, each.leader) for each in found] == [(0, 1), (1, None), (2, 2)]
    assert [each.takes_over_from for each in found] == [None, None, 1]
    assert found[2].at == minute(3)


def test_a_leader_that_comes_back_takes_over_from_nobody() -> None:
    found = elections_of((*LED[:2], led(2, 1, 3, unclean=True)))
    assert [each.takes_over_from for each in found] == [None] * 3


def test_elections_that_may_have_been_later_leave_nothing_told() -> None:
    told = Evidence(elections=(CLEAN,), is_replicated=True, epochs={0: minute(0)})
    assert told.unjudged() is None
    unsure = replace(told, uncertain="the times of the metadata log go back")
    assert unsure.unjudged() == Unjudged(None, "the times of the metadata log go back")
    # Who has no other replica loses nothing by any election.
    assert replace(unsure, is_replicated=False).unjudged() is None
