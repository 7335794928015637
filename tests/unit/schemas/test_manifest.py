"""A manifest of another shape is damaged: no command makes something of it.

Its types name all that is written, and a field that is misspelt in the code is an error of mypy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from analytics.errors import CannotTellError, WorkspaceError
from analytics.workspace import Workspace
from schemas.manifest import Manifest, fault_in
from tests.support.decoded_here import decoded_here
from tests.support.replayed_here import replayed_here
from tests.support.written_workspace import EMPTY

AS_OF = {"time": None, "offsets": {}}
DUMP = "examples/kafka-4.3.1-failover"


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_what_every_manifest_has_may_not_lack(name: str) -> None:
    lacking = {key: each for key, each in EMPTY.items() if key != name}
    assert fault_in(lacking) == f"it lacks {name}"


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"partitions": {}}, "partitions is no list"),
        ({"partitions": [{"topic": "t"}]}, "it lacks partitions.partition"),
        (
            {"partitions": [{"topic": "t", "partition": "7"}]},
            "partitions.partition is not what it has to be",
        ),
        (
            {"partitions": [{"topic": "t", "partition": True}]},
            "partitions.partition is not what it has to be",
        ),
        (
            {"partitions": [{"topic": "t", "partition": 7, "losses": [{"first_offset": 7}]}]},
            "it lacks partitions.losses.end_offset",
        ),
        (
            {"partitions": [{"topic": "t", "partition": 7, "clock_steps": [[1, 2]]}]},
            "partitions.clock_steps is not what it has to be",
        ),
        ({"absent_partitions": {"t": 7}}, "absent_partitions is no list"),
        ({"kafka_version": "4.3"}, "kafka_version is no object"),
        ({"replay": {"kafka_version": "4.3"}}, "it lacks replay.as_of"),
        ({"replay": []}, "replay is no object"),
        ({"evaluations": []}, "evaluations is no object"),
        ({"dialect": {"name": "kip-932-text"}}, "it lacks dialect.unseen"),
        ({"replay": {"as_of": AS_OF, "kafka_version": "4.3"}}, None),
        ({"written_by_a_later_release": 7}, None),
    ],
)
def test_each_part_is_what_it_has_to_be(said: dict[str, Any], fault: str | None) -> None:
    assert fault_in({**EMPTY, **said}) == fault


def test_the_file_is_named(tmp_path: Path) -> None:
    Workspace(str(tmp_path)).prepare().publish([], [], {**EMPTY, "copies": "broker-1"})
    with pytest.raises(WorkspaceError, match=r"manifest\.json is damaged: copies is no list"):
        Workspace(str(tmp_path)).manifest()


def test_a_workspace_of_a_dialect_is_no_dump(tmp_path: Path) -> None:
    dialect = {"name": "kip-932-text", "unseen": [], "rows": {}}
    said = {"schema_version": 3, "created_from": ["dump"], "dialect": dialect}
    space = Workspace(str(tmp_path))
    space.prepare().publish([], [], said)
    assert space.any_manifest() == {**said, "files": {}}
    with pytest.raises(CannotTellError, match=r"holds share state of the dialect kip-932-text"):
        space.manifest()


def unnamed(value: object, kind: object, place: str = "") -> Iterator[str]:
    """Yield the keys in a value that its type does not name."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        for each in inner if value is not None else ():
            yield from unnamed(value, each, place)
    elif is_typeddict(kind):
        assert isinstance(value, dict)
        named = get_type_hints(kind)
        for key, each in value.items():
            if key not in named:
                yield f"{place}.{key}"
            else:
                yield from unnamed(each, named[key], f"{place}.{key}")
    elif origin is list:
        assert isinstance(value, list)
        for each in value:
            yield from unnamed(each, inner[0], place)
    elif origin is dict:
        assert isinstance(value, dict)
        for each in value.values():
            yield from unnamed(each, inner[1], place)


def test_the_types_name_all_that_is_written_of_a_dump(tmp_path: Path, repository: Path) -> None:
    decoded = decoded_here([str(repository / DUMP)], tmp_path / "decoded")
    space = replayed_here(decoded, tmp_path / "replayed")
    manifest = json.loads((tmp_path / "replayed" / "manifest.json").read_text("utf-8"))
    assert manifest == space.manifest()
    assert set(unnamed(manifest, Manifest)) == set()


def test_a_key_that_no_type_names_would_be_seen() -> None:
    manifest = {**EMPTY, "partitions": [{"topic": "t", "partition": 7, "ofset": 7}]}
    assert list(unnamed(manifest, Manifest)) == [".partitions.ofset"]
