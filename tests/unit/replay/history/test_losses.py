"""What a lost segment or compaction may have taken is not taken for what was not there."""

from __future__ import annotations

from typing import Any

import polars as pl

from analytics.replay.log.losses import Coverage
from tests.support.told_offset_history import told_offset_history

OFFSETS = "__consumer_offsets"
LOST_UNTIL = 10
GROUP_BEFORE, GROUP_AFTER = 1, 11
FIRST_COMMIT, SECOND_COMMIT = 12, 13
EMPTY = {"protocol_type": "consumer", "generation": 2, "protocol": None, "leader": None}

LOGS = {
    "whole, with a group": (GROUP_BEFORE, False),
    "whole, without a group": (None, False),
    "the group before the loss": (GROUP_BEFORE, True),
    "the group behind the loss": (GROUP_AFTER, True),
    "a loss, without a group": (None, True),
}
"""Where the record of the group lies, and whether what is below `LOST_UNTIL` has a hole."""

EXPLAINED = {"whole, with a group", "whole, without a group", "the group behind the loss"}


def row(partition: int, offset: int, key: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    place = {"topic": OFFSETS, "partition": partition, "offset": offset, "batch_offset": offset}
    place |= {"is_tombstone": False, "leader_epoch": 0, "producer_id": -1}
    return {**place, "key": key, "value": value}


def records() -> dict[str, list[dict[str, Any]]]:
    """A group without members, and commits that step back."""
    found: dict[str, list[dict[str, Any]]] = {"group_metadata": [], "offset_commit": []}
    for partition, (name, (place, _)) in enumerate(LOGS.items()):
        if place is not None:
            group = {**EMPTY, "members": []}
            found["group_metadata"].append(row(partition, place, {"group": name}, group))
        for offset, committed in ((FIRST_COMMIT, 100), (SECOND_COMMIT, 50)):
            key = {"group": name, "topic": "t", "partition": 0}
            found["offset_commit"].append(row(partition, offset, key, {"offset": committed}))
    return found


def steps_back(history: pl.DataFrame) -> dict[str, dict[str, Any]]:
    back = history.filter(pl.col("advance") < 0)
    return {each["group_id"]: each for each in back.iter_rows(named=True)}


def test_behind_a_loss_only_what_is_written_there_says_what_the_group_was() -> None:
    lost = {
        (OFFSETS, partition): LOST_UNTIL
        for partition, (_, is_lost) in enumerate(LOGS.values())
        if is_lost
    }
    coverage = Coverage(complete_from=lost, uncompacted_from=lost)
    history = told_offset_history(records(), "4.3", coverage)
    back = steps_back(history)
    assert back.keys() == LOGS.keys()
    causes = {name: each["cause"] for name, each in back.items()}
    assert causes == {
        name: "committed_while_empty" if name in EXPLAINED else "unknown" for name in LOGS
    }
    origins = {name: each["origin"] for name, each in back.items()}
    assert origins == {name: "admin_or_simple" if name in EXPLAINED else "unknown" for name in LOGS}


GONE: dict[str, Any] = {"is_tombstone": True, "value": None}
COMPACTED = {
    # What compaction left of the group, in which table, and up to where it has been.
    "a classic group, in force": ("group_metadata", {}, 20, True),
    "a classic tombstone: another type may have followed": ("group_metadata", GONE, 20, False),
    "a classic tombstone, nothing taken behind it": ("group_metadata", GONE, 12, True),
    "a newer group: members may have been there": ("consumer_group_metadata", {}, 20, False),
    "a newer group, nothing taken behind it": ("consumer_group_metadata", {}, 12, True),
}


def test_compaction_leaves_what_a_classic_group_was_but_not_what_followed_a_tombstone() -> None:
    """A broker of 4.1.2 converted a group; of the consumer group in between nothing was left."""
    found: dict[str, list[dict[str, Any]]] = {"offset_commit": []}
    for partition, (name, (table, changed, _, _)) in enumerate(COMPACTED.items()):
        value = {**EMPTY, "members": []} if table == "group_metadata" else {"epoch": 4}
        key = {"group" if table == "group_metadata" else "group_id": name}
        record = row(partition, GROUP_BEFORE, key, value) | changed
        found.setdefault(table, []).append(record)
        for offset, committed in ((FIRST_COMMIT, 100), (SECOND_COMMIT, 50)):
            of = {"group": name, "topic": "t", "partition": 0}
            found["offset_commit"].append(row(partition, offset, of, {"offset": committed}))
    shown = {(OFFSETS, at): until for at, (_, _, until, _) in enumerate(COMPACTED.values())}
    history = told_offset_history(found, "4.3", Coverage(uncompacted_from=shown))
    back = steps_back(history)
    assert {name: back[name]["origin"] for name in COMPACTED} == {
        name: "admin_or_simple" if is_told else "unknown"
        for name, (*_, is_told) in COMPACTED.items()
    }
