"""A partition's rows cut into stretches, each the work of a task, are reported as if by one."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from analytics.decode import archived_rows
from analytics.decode.archived_rows import ArchiveReport, _run_partition, one_report
from analytics.decode.tasks import Settings
from tests.support.segments import NOW

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = ("__consumer_offsets", "__share_group_state")
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("unparsed", pa.string()),
        ("flaw", pa.string()),
        ("file", pa.string()),
        ("row", pa.int64()),
        ("line", pa.string()),
    ]
)
KEYS = [b"\x00\x02\x00\x01g", b"\x00\x03\x00\x01g", b"no key", b"\x00\x63\x00\x01g", None]
"""Two of groups, one that does not decode, one of a type that nobody knows, none."""
ROWS = 60


def rows_of(draw: random.Random) -> list[dict[str, Any]]:
    """Rows in the order of the log: holes, the same again, contradictions, clocks set back."""
    rows: list[dict[str, Any]] = []
    at_ms = NOW
    for topic in TOPICS:
        for partition in range(draw.choice([1, 3])):
            offset = draw.choice([0, 0, 5])
            for _ in range(draw.randrange(1, ROWS)):
                at_ms += draw.choice([0, 500, 2_000, 70_000, -20_000_000, 200_000_000])
                times = at_ms if draw.random() > 0.1 else -1
                one = {"topic": topic, "partition": partition, "offset": offset}
                one |= {"timestamp": times, "key": draw.choice(KEYS), "value": None}
                rows.append(one)
                if draw.random() < 0.1:
                    rows.append(one | {"value": draw.choice([None, b"\x00\x00"])})
                offset += draw.choice([1, 1, 1, 2, 9])
    return rows


def report_of(folder: Path, rows: list[dict[str, Any]]) -> ArchiveReport:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    return _run_partition(iter([batch]), Settings(str(folder)), frozenset())


@pytest.mark.parametrize("most_gaps", [1000, 4])
@pytest.mark.parametrize("seed", range(20))
def test_stretches_are_reported_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, most_gaps: int
) -> None:
    monkeypatch.setattr(archived_rows, "_MOST_GAPS", most_gaps)
    draw = random.Random(seed)
    rows = rows_of(draw)
    places = [tuple(row[name] for name in ("topic", "partition", "offset")) for row in rows]
    # Rows of one offset go to one task.
    between = [at for at in range(1, len(rows)) if places[at] != places[at - 1]]
    cuts = sorted(draw.sample(between, min(len(between), draw.randrange(1, 12))))
    tasks = [
        report_of(tmp_path / str(first), rows[first:end])
        for first, end in pairwise([0, *cuts, len(rows)])
    ]
    whole, cut = one_report([report_of(tmp_path / "whole", rows)]), one_report(tasks)
    assert cut.partitions == whole.partitions
    assert sum(each.rows for each in cut.partitions) == len(rows)
    assert sum(each.rows for each in cut.parts) == sum(each.rows for each in whole.parts)
