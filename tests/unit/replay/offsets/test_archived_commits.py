"""Random logs of commits as archived rows: no producers, no markers, and what is certain anyway.

Of such rows nothing tells a commit in a transaction from others, but for the topic's id, which no
commit in a transaction names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from analytics.dump.inspection.found_losses import Loss, merged
from analytics.replay.log.losses import Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.offset_state import committed_offsets
from tests.support.decoded_frames import frames_of, named_rows
from tests.support.reference_offset_history import OFFSETS, Log, random_log
from tests.support.told_offset_history import told_offset_history

LOGS, ACTS = 250, 30
TOPIC_ID = "bewsWPC-RJyx_Rn3wu_Ypg"
TABLES = ("offset_commit", "control_markers", "transaction_log")
IT_MAY_BE = re.compile(
    r"it may be (?:any of \d+ offsets from (?P<least>\d+) to (?P<most>\d+)|(?P<one>\d+)), "
    r"or (?P<before>none|\d+)(?P<lost>, or one that is not in the rows)?(?:;|$)"
)


class Archived:
    """Logs without markers and producers; of some commits outside transactions the topic's id."""

    def __init__(self, release: str, *, holes_are_losses: bool) -> None:
        self.logs = [
            random_log(each, ACTS, clears_pending=release == "4.3") for each in range(LOGS)
        ]
        for log in self.logs:
            # What the archive ends with: nothing tells of a marker behind it.
            log.snapshot({})
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        holes: dict[tuple[str, int], list[Loss]] = {}
        for log in self.logs:
            chance = Random(f"ids of {log.number}")
            for name in ("offset_commit", "group_metadata"):
                self.rows[name] += [
                    archived(row, names_topic=release == "4.3" and chance.random() < 0.6)
                    for row in log.rows[name]
                ]
            offsets = [row["offset"] for row in log.rows["control_markers"]]
            found = merged(Loss(each, each + 1, "no row has this offset") for each in offsets)
            if found:
                holes[OFFSETS, log.number] = found
        until = {key: each[-1].end for key, each in holes.items()}
        self.coverage = Coverage(
            complete_from=until if holes_are_losses else {},
            uncompacted_from=until,
            losses=holes if holes_are_losses else {},
            undecided=frozenset(range(LOGS)),
        )

    @property
    def by_group(self) -> dict[str, Log]:
        """Each log by its only group."""
        return {log.group: log for log in self.logs}


def archived(row: dict[str, Any], *, names_topic: bool) -> dict[str, Any]:
    """Return a record without what its batch says."""
    batch = ("batch_offset", "leader_epoch", "producer_id", "is_transactional")
    kept = row | dict.fromkeys(batch)
    if names_topic and row["producer_id"] < 0 and row["value"] is not None and "members" not in row:
        kept["value"] = row["value"] | {"topic_id": TOPIC_ID}
    return kept


@pytest.fixture(scope="module", params=["3.9", "4.3"])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[True, False], ids=["holes are losses", "complete archive"])
def given(request: pytest.FixtureRequest, release: str) -> Archived:
    return Archived(release, holes_are_losses=bool(request.param))


def is_possible(row: SimpleNamespace, log: Log) -> bool:
    """Whether what was in force is among what a row says that it may have been."""
    said = log.in_force.get(row.partition)
    found = IT_MAY_BE.search(row.missing)
    if found is None:
        return "a lost record may have changed it" in row.missing
    if found["lost"]:
        return True
    before = None if found["before"] == "none" else int(found["before"])
    least, most = (int(found[name] or found["one"]) for name in ("least", "most"))
    value = said.offset if said else None
    return value == before or (value is not None and least <= value <= most)


def test_a_complete_offset_is_in_force_and_an_incomplete_one_says_what_it_may_be(
    given: Archived, release: str
) -> None:
    decoded = frames_of(given.rows, TABLES)
    rows = named_rows(committed_offsets(decoded, replay_rules(release), None, given.coverage))
    assert {row.complete for row in rows} == ({True, False} if release == "4.3" else {False})
    for row in rows:
        log = given.by_group[row.group_id]
        said = log.in_force.get(row.partition)
        if row.complete:
            assert said is not None
            assert (said.record_offset, said.offset) == (row.record_offset, row.committed_offset)
        else:
            assert is_possible(row, log), row
    shown = {(row.group_id, row.partition) for row in rows}
    in_force = {(log.group, partition) for log in given.logs for partition in log.in_force}
    assert in_force <= shown


def test_a_complete_change_happened_and_no_other_one_says_what_was_before(
    given: Archived, release: str
) -> None:
    rows = named_rows(told_offset_history(given.rows, release, given.coverage))
    assert {row.complete for row in rows} == {True, False}
    for row in rows:
        log = given.by_group[row.group_id]
        truth = {(each.partition, each.effective_offset): each for each in log.changes}
        if row.complete:
            change = truth[row.partition, row.effective_offset]
            names = ("event", "committed_offset", "previous_offset", "record_offset")
            assert all(getattr(row, name) == getattr(change, name) for name in names), row
            assert row.cause in {change.cause, "unknown"}
        else:
            assert (row.previous_offset, row.advance) == (None, None)
            assert row.confidence in {"low", None}
