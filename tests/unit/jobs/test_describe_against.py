"""A saved output of Kafka's tool held against rows: what it does not print is no difference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from analytics.decode.selection import Selection, names_wanted
from jobs.cli.console import Console
from jobs.comparing import compare_saved
from jobs.workspaces.replayed import Replayed
from reports.describe.groups import read_partitions
from tests.unit.reports.test_describe_rows import SOURCE, commit


def replayed(release: str, selection: Selection) -> Replayed:
    """Return a state of which nothing is asked but names."""
    state: Any = SimpleNamespace(
        release=release,
        tables=SimpleNamespace(selection=selection),
        topics_wanted=lambda topics: pa.array(
            names_wanted(topics.to_pylist(), selection.topics), pa.string()
        ),
    )
    return cast("Replayed", state)


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
    found = compare_saved(str(saved), source, replayed("4.3.1", Selection()), Console())
    assert (found.total, found.equal, found.differing) == (2, 2, [])


def test_share_groups_of_4_0_are_compared_of_the_topics_asked_for_alone(tmp_path: Path) -> None:
    share = [each for each in SOURCE.assignments.to_pylist() if each["group_id"] == "queue"]
    given = pa.Table.from_pylist(
        [*share, {**share[0], "topic": "clicks", "partition": 0}], SOURCE.assignments.schema
    )
    source = replace(SOURCE, assignments=given)
    cells = [("GROUP", "TOPIC", "PARTITION", "START-OFFSET"), ("queue", "orders", "2", "60")]
    cells.append(("queue", "clicks", "0", "-"))
    lines = ["{:<15} {:<25} {:<10} {}".format(*line) for line in cells]
    saved = tmp_path / "saved.txt"
    saved.write_text("\n".join(lines), encoding="utf-8")
    for topics, total in (((), 2), (("orders",), 1)):
        state = replayed("4.0.2", Selection(topics=topics))
        found = compare_saved(str(saved), source, state, Console())
        assert (found.total, found.differing) == (total, []), topics
