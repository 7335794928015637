"""Where keys are looked for: the quick look that nearly every dump passes changes no answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from analytics.decode.tables import table_schema
from analytics.engine import key_places
from analytics.engine.key_places import internal_topics
from analytics.replay.log.log_times import END
from analytics.replay.log.topic_homes import TopicHomes, home_of
from analytics.tables.record_reader import RecordReader
from analytics.workspace import Workspace
from tests.support.examples import examples
from tests.support.written_workspace import OFFSETS, write_workspace

START = datetime(2026, 11, 25, tzinfo=UTC)
Commit = tuple[str, int]


def written(folder: Path, commits: list[Commit]) -> Workspace:
    """Write commits of groups into partitions, one a minute."""
    numbers = sorted({number for _, number in commits}) or [0]
    write_workspace(folder, {}, partitions=[{"partition": number} for number in numbers])
    schema = table_schema("offset_commit")
    rows = [
        {
            **dict.fromkeys(schema.names),
            "topic": OFFSETS,
            "partition": number,
            "offset": offset,
            "timestamp": START + timedelta(minutes=offset),
            "is_tombstone": False,
            "key": {"group": group, "topic": "orders", "partition": 0},
        }
        for offset, (group, number) in enumerate(commits)
    ]
    path = folder / "decoded" / "offset_commit"
    path.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), path / "part-00000.parquet")
    return Workspace(str(folder))


def homes(folder: Path, commits: list[Commit]) -> dict[str, TopicHomes]:
    space = written(folder, commits)
    manifest: dict[str, Any] = {"absent_partitions": {}, **space.manifest()}
    return internal_topics(RecordReader(space), manifest, END).homes


def test_groups_at_home_are_not_looked_at_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(*_: object) -> None:
        raise AssertionError("keys were gathered")

    monkeypatch.setattr(key_places, "key_places", kept)
    names = [f"group-{number}" for number in range(300)]
    assert homes(tmp_path, [(name, home_of(name, 50)) for name in names]) == {}
    with pytest.raises(AssertionError, match="gathered"):
        homes(tmp_path / "moved", [*((name, home_of(name, 50)) for name in names), (names[0], 3)])


_GROUPS = st.sampled_from([f"group-{number}" for number in range(6)])
_NUMBERS = st.sampled_from([2, 3, 50])


@examples(
    4,
    15,
    placed=st.lists(st.tuples(_GROUPS, _NUMBERS), min_size=1, max_size=10),
    stray=st.lists(st.tuples(_GROUPS, st.integers(0, 3)), max_size=1),
)
def test_the_quick_look_changes_no_answer(
    placed: list[tuple[str, int]],
    stray: list[Commit],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    commits = [*((group, home_of(group, number)) for group, number in placed), *stray]
    quick = homes(tmp_path_factory.mktemp("quick"), commits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_places, "_numbers_that_fit", lambda *_: ())
        assert homes(tmp_path_factory.mktemp("whole"), commits) == quick


def test_the_number_of_partitions_is_known_where_keys_allow_one_alone(tmp_path: Path) -> None:
    def counts(folder: str, commits: list[Commit]) -> dict[str, int]:
        space = written(tmp_path / folder, commits)
        manifest: dict[str, Any] = {"absent_partitions": {}, **space.manifest()}
        return internal_topics(RecordReader(space), manifest, END).partition_counts

    names = [f"group-{number}" for number in range(300)]
    assert counts("many", [(name, home_of(name, 20)) for name in names]) == {OFFSETS: 20}
    assert counts("one", [("group-1", home_of("group-1", 20))]) == {}
    assert counts("none", []) == {}
