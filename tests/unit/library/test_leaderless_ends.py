"""The failover with some of its disks: an answer stays right or becomes "cannot tell"."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from analytics.gaps.group_completeness import GroupCompleteness
from analytics.replay.log.topic_homes import home_of
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from jobs.workspaces.replayed import Replayed
from tests.support.decoded_here import decoded_here
from tests.support.replayed_here import replayed_here

BROKERS = ("broker-1", "broker-2", "broker-3")
BEFORE_THE_ELECTION = 1795252647856
"""Only broker 1 led then; 2 and 3 were dead."""
ELECTED = 1795252863106
"""All leaders are 2 or 3."""
KEYS = {
    "committed_offsets": ("group_id", "topic", "partition"),
    "pending_offsets": ("group_id", "topic", "partition", "producer_id"),
    "groups": ("group_id",),
    "share_partitions": ("group_id", "topic_id", "partition"),
}
CHANGES_ALONE = {"complete", "missing", "copy", "segment", "batch_position"}
"""Where a record lies in which copy, and what is said of completeness."""

Rows = dict[tuple[Any, ...], dict[str, Any]]


def rows_of(space: Workspace, name: str) -> Rows:
    rows = StoredTables(space).read(name).to_pylist()
    return {tuple(row[each] for each in KEYS[name]): row for row in rows}


def dump_of(dump: Path, folder: Path, brokers: tuple[str, ...]) -> Path:
    for each in (*brokers, "controller-100"):
        shutil.copytree(dump / each, folder / each)
    return folder


@pytest.fixture(scope="module")
def decoded(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    kept: dict[tuple[str, ...], Workspace] = {}

    def of(brokers: tuple[str, ...]) -> Workspace:
        if brokers not in kept:
            folder = tmp_path_factory.mktemp("-".join(brokers))
            dump = dump_of(failover_dump, folder / "dump", brokers)
            kept[brokers] = decoded_here([str(dump)], folder / "decoded")
        return kept[brokers]

    return of


@pytest.fixture(scope="module")
def whole(decoded: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[int | None, Workspace]:
    folder = tmp_path_factory.mktemp("whole")
    instants = (None, BEFORE_THE_ELECTION, ELECTED)
    return {each: replayed_here(decoded(BROKERS), folder / str(each), each) for each in instants}


def complete(rows: Rows) -> Rows:
    return {key: row for key, row in rows.items() if row["complete"]}


def told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in CHANGES_ALONE}


SUBSETS = [each for size in (1, 2) for each in combinations(BROKERS, size)]
INSTANTS = (None, BEFORE_THE_ELECTION)
ASKED = [
    # Quick: some disks at the end and the others before the election, one and two of each.
    *(
        pytest.param(brokers, instant, marks=() if (one + other) % 2 else pytest.mark.long)
        for one, brokers in enumerate(SUBSETS)
        for other, instant in enumerate(INSTANTS)
    ),
    (("broker-1",), ELECTED),
]


@pytest.mark.parametrize(("brokers", "instant"), ASKED)
def test_without_some_disks_every_answer_is_that_of_all_disks_or_cannot_be_told(
    brokers: tuple[str, ...],
    instant: int | None,
    decoded: Any,
    whole: dict[int | None, Workspace],
    tmp_path: Path,
) -> None:
    source = decoded(brokers)
    space = replayed_here(source, tmp_path / "replayed", instant)
    completeness = GroupCompleteness(Replayed(StoredTables(space), source, space.manifest()))
    for name in KEYS:
        found, every = rows_of(space, name), rows_of(whole[instant], name)
        for key, row in complete(found).items():
            assert told(row).items() >= known(told(row), told(every[key])).items(), (name, key)
        if name != "share_partitions":
            missing = {key[0] for key in every if key not in found}
            assert all(completeness.gaps_of(group).every for group in missing), name


def known(row: dict[str, Any], every: dict[str, Any]) -> dict[str, Any]:
    """What all disks say, but for the transaction whose log some of them lack."""
    of_transaction = {"transactional_id", "transaction_state", "decided"}
    is_unknown = row.get("transactional_id") is None
    return {
        name: value for name, value in every.items() if not (is_unknown and name in of_transaction)
    }


@pytest.mark.parametrize("brokers", [("broker-2",), ("broker-3",), ("broker-2", "broker-3")])
def test_what_was_in_sync_to_the_end_tells_all_of_the_end(
    brokers: tuple[str, ...], decoded: Any, whole: dict[int | None, Workspace], tmp_path: Path
) -> None:
    space = replayed_here(decoded(brokers), tmp_path / "replayed")
    for name in ("committed_offsets", "groups"):
        assert complete(rows_of(space, name)).keys() == complete(rows_of(whole[None], name)).keys()


def test_the_dead_broker_alone_tells_of_the_time_before_the_election_only(
    decoded: Any, whole: dict[int | None, Workspace], tmp_path: Path
) -> None:
    alone = decoded(("broker-1",))
    then = replayed_here(alone, tmp_path / "then", BEFORE_THE_ELECTION)
    end = replayed_here(alone, tmp_path / "end")
    on_disk = {
        key: row
        for key, row in rows_of(whole[BEFORE_THE_ELECTION], "committed_offsets").items()
        if home_of(key[0], 10) != 7
    }
    assert complete(rows_of(then, "committed_offsets")).keys() == on_disk.keys()
    assert not complete(rows_of(end, "committed_offsets"))
    assert not complete(rows_of(end, "groups"))
    (sentence, *_) = end.manifest()["unanswerable"]
    assert sentence.startswith(
        "what happened in __consumer_offsets 0-6, 8-9 since 2026-11-21T09:20"
    )


@pytest.mark.parametrize("brokers", [("broker-1", "broker-3"), BROKERS], ids="-".join)
def test_without_the_notes_of_leader_epochs_the_same_line_survives(
    brokers: tuple[str, ...], decoded: Any, failover_dump: Path, tmp_path: Path
) -> None:
    dump = dump_of(failover_dump, tmp_path / "dump", brokers)
    for each in dump.rglob("leader-epoch-checkpoint"):
        each.unlink()
    found = decoded_here([str(dump)], tmp_path / "decoded").manifest()
    names = ("topic", "partition", "copy", "diverges_at", "lost_records", "elected_at", "unclean")
    lines = [
        [tuple(each[name] for name in names) for each in manifest["divergences"]]
        for manifest in (found, decoded(brokers).manifest())
    ]
    assert lines[0] == lines[1]
    assert len(lines[0]) == 11
