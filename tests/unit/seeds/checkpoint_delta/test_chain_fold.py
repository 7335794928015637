"""The fold of chains against a plain leader, on random histories: cut, harmed, shuffled, mixed."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.seeds.checkpoint_delta.chain_fold import fold_chains, follow_chains
from analytics.seeds.checkpoint_delta.chain_tables import chain_tables
from analytics.seeds.checkpoint_delta.control_segments import ChainLog
from tests.support.chain_histories import as_rows, harmed, written
from tests.support.reference_chains import ChainRecord, Range, recover

seeds = st.integers(0, 2**32 - 1)


def tables_of(*logs: list[ChainRecord]) -> dict[str, pa.Table]:
    return chain_tables(
        fold_chains([ChainLog("orders", number, as_rows(each)) for number, each in enumerate(logs)])
    )


def told(tables: dict[str, pa.Table], partition: int) -> dict[str, Any]:
    """What the tables say of each group, in the words of the reference."""
    found: dict[str, Any] = {}
    for row in tables["share_checkpoints"].to_pylist():
        if row["partition"] == partition:
            found[row["group_id"]] = {
                "start": row["start_offset"],
                "end": row["end_offset"],
                "epoch": row["checkpoint_epoch"],
                "ranges": [],
                "told": {},
            }
    for row in tables["share_batches"].to_pylist():
        if row["partition"] == partition:
            found[row["group_id"]]["ranges"].append(
                Range(
                    row["first_offset"],
                    row["last_offset"],
                    row["delivery_state"],
                    row["delivery_count"],
                )
            )
    for row in tables["chain"].to_pylist():
        if row["partition"] == partition:
            told_ = (row["ok"], row["start_offset"], row["end_offset"])
            found[row["group_id"]]["told"][row["offset"]] = told_
    return found


def expected(records: list[ChainRecord]) -> dict[str, Any]:
    return {
        group: {
            "start": state.start,
            "end": state.end,
            "epoch": state.epoch if state.newest is not None else None,
            "ranges": state.ranges,
            "told": state.told,
        }
        for group, state in recover(records).items()
    }


@given(seeds)
@settings(max_examples=40)
def test_what_leaders_write_is_what_is_told(seed: int) -> None:
    histories = [written(random.Random(seed + number)) for number in range(3)]
    tables = tables_of(*histories)
    for number, records in enumerate(histories):
        assert told(tables, number) == expected(records)
    assert all(tables["share_partitions"]["complete"].to_pylist())
    assert all(tables["chain"]["ok"].to_pylist())


@given(seeds)
@settings(max_examples=100)
def test_what_is_lost_or_wrong_ends_a_chain_where_the_leader_ends_it(seed: int) -> None:
    chance = random.Random(seed)
    records = harmed(chance, written(chance))
    in_order = tables_of(records)
    assert told(in_order, 0) == expected(records)
    chance.shuffle(records)
    assert tables_of(records) == in_order


@given(seeds)
@settings(max_examples=60)
def test_a_lost_record_is_never_papered_over(seed: int) -> None:
    """Where the records that are left do not give the state, it is not called complete.

    Of records behind the newest one that is left only the log can tell, not the chain.
    """
    chance = random.Random(seed)
    whole = written(chance, groups=2)
    kept = [each for each in whole if chance.random() > 0.15]
    newest = {each.group: each.offset for each in kept}
    cut = [each for each in whole if each.offset <= newest.get(each.group, -1)]
    truth, found = recover(cut), recover(kept)
    for row in tables_of(kept)["share_partitions"].to_pylist():
        group = row["group_id"]
        if row["complete"]:
            assert row["start_offset"] == truth[group].start
            assert found[group].ranges == truth[group].ranges


def test_compiled_and_interpreted_loops_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(5)
    histories = [harmed(chance, written(chance, records=80)) for _ in range(40)]
    interpreted = tables_of(*histories)
    monkeypatch.setattr(type(follow_chains), "pays", lambda *_: True)
    assert tables_of(*histories) == interpreted


def test_of_nothing_there_is_nothing() -> None:
    assert {name: rows.num_rows for name, rows in tables_of().items()} == dict.fromkeys(
        ("chain", "share_batches", "share_checkpoints", "share_partitions"), 0
    )
    assert tables_of([])["chain"].num_rows == 0
