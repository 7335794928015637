"""Segments of a data partition with a byte changed or bytes gone: nothing wrong is told as sure."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.seeds.checkpoint_delta.chain_fold import fold_chains
from analytics.seeds.checkpoint_delta.chain_tables import chain_tables, unseen
from analytics.seeds.checkpoint_delta.inputs import chain_inputs
from tests.support.chain_histories import as_control_batch, written
from tests.support.reference_chains import ChainRecord, Range, recover
from tests.support.segments import batch, records


def log_bytes(found: list[ChainRecord]) -> bytes:
    """Control batches at their offsets, and data in all offsets between."""
    parts, at = [], 0
    for record in found:
        if at < record.offset:
            parts.append(batch(records(at, record.offset - at)).data)
        parts.append(as_control_batch(record).data)
        at = record.offset + 1
    return b"".join(parts)


def told(folder: Path) -> tuple[dict[str, dict[str, Any]], str | None]:
    """What is told of each group, with its ranges, and what of the log cannot be seen."""
    (log,) = (each.read() for each in chain_inputs([str(folder)]))
    tables = chain_tables(fold_chains([log]))
    rows = {
        row["group_id"]: {**row, "ranges": []} for row in tables["share_partitions"].to_pylist()
    }
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    for row in tables["share_batches"].to_pylist():
        rows[row["group_id"]]["ranges"].append(Range(*(row[name] for name in names)))
    return rows, unseen(log)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_what_is_called_complete_is_so(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    chance = random.Random(seed)
    whole = written(chance, groups=2, records=25)
    content = bytearray(log_bytes(whole))
    if not content:
        return
    for _ in range(chance.choice((1, 1, 1, 3))):
        at = chance.randrange(len(content))
        if chance.random() < 0.7:
            content[at] ^= 1 << chance.randrange(8)
        else:
            del content[at : at + chance.choice((1, 8, 100))]
    folder = tmp_path_factory.mktemp("log") / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(content)
    end = f"0\n1\norders 0 {whole[-1].offset + 1}\n"
    (folder.parent / "replication-offset-checkpoint").write_text(end, "utf-8")

    found, hidden = told(folder.parent)
    truth = recover(whole)
    for group, row in found.items():
        if row["complete"]:
            assert (row["start_offset"], row["ranges"]) == (
                truth[group].start,
                truth[group].ranges,
            )
    if set(found) != set(truth):
        assert hidden is not None
