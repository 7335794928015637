"""Committed and pending offsets, told as short logs: each case is an internal partition."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from analytics.replay.log.log_times import AsOf, cut_all
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.offset_state import committed_offsets, pending_offsets
from schemas import ZERO_UUID, table
from tests.support.decoded_frames import frames_of, named_rows

TOPIC = "__consumer_offsets"
TABLES = ("offset_commit", "control_markers", "transaction_log")
ID = "gtb2stGYRk-vWZ2zAozmoA"
AT = 1_700_000_000_000


@dataclass(frozen=True)
class Step:
    """One record: a commit of an offset, a tombstone (no offset), or a marker."""

    offset: int | None = None
    producer: int = -1
    marker: str | None = None
    is_transactional: bool = True


def plain(offset: int) -> Step:
    return Step(offset)


def pending(offset: int, producer: int = 7) -> Step:
    return Step(offset, producer)


def tombstone(producer: int = -1) -> Step:
    return Step(None, producer)


def commit(producer: int = 7) -> Step:
    return Step(producer=producer, marker="COMMIT")


def abort(producer: int = 7) -> Step:
    return Step(producer=producer, marker="ABORT")


Expected = tuple[int | None, list[int]]
"""The committed offset, and those pending."""

CASES: dict[str, tuple[list[Step], Expected, Expected]] = {
    # name: log, what 3.9 makes of it, what 4.3 makes of it
    "nothing": ([], (None, []), (None, [])),
    "last commit wins, also a lower one": ([plain(9), plain(4)], (4, []), (4, [])),
    "a tombstone removes": ([plain(9), tombstone()], (None, []), (None, [])),
    "a commit after the tombstone": ([plain(9), tombstone(), plain(1)], (1, []), (1, [])),
    "open": ([plain(1), pending(5)], (1, [5]), (1, [5])),
    "committed by marker": ([plain(1), pending(5), commit()], (5, []), (5, [])),
    "aborted": ([plain(1), pending(5), abort()], (1, []), (1, [])),
    "another producer's marker": ([pending(5), commit(8)], (None, [5]), (None, [5])),
    "a repeated marker": ([pending(5), commit(), commit()], (5, []), (5, [])),
    "last of a transaction wins": ([pending(5), pending(3), commit()], (3, []), (3, [])),
    "a later plain commit wins over the marker": (
        [pending(5), plain(2), commit()],
        (2, []),
        (2, []),
    ),
    "of two transactions the later record wins": (
        [pending(5, 1), pending(6, 2), commit(2), commit(1)],
        (6, []),
        (6, []),
    ),
    "one transaction after the other": (
        [pending(5), commit(), pending(6), abort(), pending(7)],
        (5, [7]),
        (5, [7]),
    ),
    "two producers pending": ([pending(5, 1), pending(6, 2)], (None, [5, 6]), (None, [5, 6])),
    "a tombstone over a pending commit": (
        [pending(5), tombstone(), commit()],
        (5, []),
        (None, []),
    ),
    "a tombstone over an open transaction": ([pending(5), tombstone()], (None, [5]), (None, [])),
    "a tombstone in the transaction itself": (
        [plain(1), pending(5), tombstone(7), commit()],
        (1, []),
        (None, []),
    ),
    "pending again after the tombstone": (
        [pending(5), tombstone(), pending(6), commit()],
        (6, []),
        (6, []),
    ),
    "producer id without the transactional bit": (
        [plain(1), Step(5, 7, is_transactional=False)],
        (5, []),
        (1, [5]),
    ),
    "committed, removed, and a marker of before": (
        [pending(3, 1), pending(4, 2), commit(2), tombstone(), commit(1)],
        (3, []),
        (None, []),
    ),
}


def rows_of(cases: list[list[Step]]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {"offset_commit": [], "control_markers": []}
    for partition, steps in enumerate(cases):
        for offset, step in enumerate(steps):
            common = {
                "topic": TOPIC,
                "partition": partition,
                "offset": offset,
                "leader_epoch": 3,
                "producer_id": step.producer,
                "producer_epoch": 0 if step.producer >= 0 else -1,
                "is_transactional": step.producer >= 0 and step.is_transactional,
            }
            if step.marker:
                rows["control_markers"].append({**common, "control_type": step.marker})
                continue
            value = None
            if step.offset is not None:
                value = {
                    "offset": step.offset,
                    "leader_epoch": -1,
                    "metadata": "",
                    "commit_timestamp": AT + offset,
                    "expire_timestamp": None,
                    "topic_id": ZERO_UUID,
                }
            key = {"group": "g", "topic": "t", "partition": 0}
            told = {"is_tombstone": value is None, "key": key, "value": value}
            rows["offset_commit"].append(common | told)
    return rows


def by_case(frame: pl.DataFrame) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for case, offset in frame.select("coordinator_partition", "committed_offset").iter_rows():
        found.setdefault(case, []).append(offset)
    return {case: sorted(offsets) for case, offsets in found.items()}


@pytest.mark.parametrize(("release", "place"), [("3.9", 1), ("4.3", 2)])
def test_what_each_release_makes_of_each_log(release: str, place: int) -> None:
    decoded = frames_of(rows_of([case[0] for case in CASES.values()]), TABLES)
    rules = replay_rules(release)
    committed = by_case(committed_offsets(decoded, rules))
    waiting = by_case(pending_offsets(decoded, rules))
    found = {
        name: (next(iter(committed.get(number, [])), None), waiting.get(number, []))
        for number, name in enumerate(CASES)
    }
    assert found == {name: case[place] for name, case in CASES.items()}


def test_a_cut_is_a_shorter_log() -> None:
    log = [plain(1), pending(5), plain(2), tombstone(), pending(6), commit(), plain(3), abort()]
    rules = replay_rules("4.3")
    whole = frames_of(rows_of([log] * (len(log) + 1)), TABLES)
    ends = AsOf({(TOPIC, end): end for end in range(len(log) + 1)})
    shorter = frames_of(rows_of([log[:end] for end in range(len(log) + 1)]), TABLES)
    for of_table in (committed_offsets, pending_offsets):
        assert by_case(of_table(cut_all(whole, ends), rules)) == by_case(of_table(shorter, rules))


# --- what stored numbers mean ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def told() -> dict[str, SimpleNamespace]:
    """One commit in full, and one that is pending, with the transaction it belongs to."""
    rows = rows_of([[plain(41), pending(42)]])
    first = rows["offset_commit"][0]["value"]
    first.update(leader_epoch=6, metadata="note", expire_timestamp=AT + 5, topic_id=ID)
    rows["transaction_log"] = [
        {
            "topic": "__transaction_state",
            "partition": 0,
            "offset": offset,
            "is_tombstone": False,
            "key": {"transactional_id": "tx"},
            "value": {
                "producer_id": 7,
                "previous_producer_id": -1,
                "next_producer_id": -1,
                "producer_epoch": epoch,
                "transaction_status": status,
                "transaction_partitions": [{"topic": TOPIC, "partition_ids": [0]}],
            },
        }
        for offset, (status, epoch) in enumerate([(1, 0), (2, 1)])
    ]
    decoded = frames_of(rows, TABLES)
    rules = replay_rules("4.3")
    (committed,) = named_rows(committed_offsets(decoded, rules))
    (waiting,) = named_rows(pending_offsets(decoded, rules))
    return {"committed": committed, "pending": waiting}


def test_the_tables_have_the_columns_of_their_contracts(told: dict[str, SimpleNamespace]) -> None:
    for found, name in (("committed", "committed_offsets"), ("pending", "pending_offsets")):
        assert [*vars(told[found])] == [column.name for column in table(name).columns]


def test_stored_numbers_become_what_they_mean(told: dict[str, SimpleNamespace]) -> None:
    row = told["committed"]
    assert (row.committed_leader_epoch, row.metadata, row.topic_id) == (6, "note", ID)
    assert (row.via, row.record_offset, row.leader_epoch) == ("plain", 0, 3)
    assert (row.expire_timestamp - row.commit_timestamp).microseconds == 5_000


def test_absent_numbers_and_ids_are_null(told: dict[str, SimpleNamespace]) -> None:
    row = told["pending"]
    absent = (row.committed_leader_epoch, row.topic_id, row.expire_timestamp)
    assert absent == (None, None, None)
    assert (row.via, row.metadata) == ("transaction", "")


def test_a_prepared_transaction_is_decided(told: dict[str, SimpleNamespace]) -> None:
    row = told["pending"]
    assert (row.producer_id, row.producer_epoch) == (7, 0)
    owner = (row.transactional_id, row.transaction_state, row.decided)
    assert owner == ("tx", "PrepareCommit", "commit")
