"""A saved output of Kafka's tool held against rows: what it does not print is no difference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from analytics.decode.selection import Selection
from jobs.cli.console import Console
from jobs.comparing import compare_saved
from jobs.workspaces.replayed import Replayed
from reports.describe.streams_groups import read_partitions
from tests.unit.reports.test_describe_rows import SOURCE, commit


def test_offsets_of_streams_groups_are_those_of_tasks_that_somebody_has(tmp_path: Path) -> None:
    nobodys = pa.Table.from_pylist([commit("words", "orders", 99, 5)], SOURCE.committed.schema)
    unknown = SOURCE.ends.slice(0, 0)
    source = replace(SOURCE, committed=pa.concat_tables([SOURCE.committed, nobodys]), ends=unknown)
    read = read_partitions(source).to_pylist()
    cells = [("GROUP", "TOPIC", "PARTITION", "OFFSET-LAG")]
    cells += [("words", "orders", str(each["partition"]), "0") for each in read]
    lines = ["{:<15} {:<25} {:<10} {}".format(*line) for line in cells]
    saved = tmp_path / "saved.txt"
    saved.write_text("\n".join(lines), encoding="utf-8")
    replayed: Any = SimpleNamespace(
        release="4.3.1",
        tables=SimpleNamespace(selection=Selection()),
        topics_wanted=lambda topics: topics.combine_chunks(),
    )
    found = compare_saved(str(saved), source, cast("Replayed", replayed), Console())
    assert (found.total, found.equal, found.differing) == (2, 2, [])
