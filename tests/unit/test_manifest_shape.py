"""A manifest of another shape is damaged: no command makes something of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analytics.errors import WorkspaceError
from analytics.workspace import Workspace, misshapen
from tests.support.written_workspace import EMPTY

AS_OF = {"time": None, "offsets": {}}


@pytest.mark.parametrize("name", sorted(EMPTY.keys() - {"schema_version"}))
def test_what_every_manifest_has_may_not_lack(name: str) -> None:
    lacking = {key: each for key, each in EMPTY.items() if key != name}
    assert misshapen(lacking) == f"it lacks {name}"


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
        ({"kafka_version": "4.3"}, "kafka_version is no object"),
        ({"replay": {"kafka_version": "4.3"}}, "it lacks replay.as_of"),
        ({"replay": []}, "replay is no object"),
        ({"evaluations": []}, "evaluations is not what it has to be"),
        ({"dialect": {"name": "kip-932-text"}}, "it lacks dialect.unseen"),
        ({"replay": {"as_of": AS_OF, "kafka_version": "4.3"}}, None),
    ],
)
def test_each_part_is_what_it_has_to_be(said: dict[str, Any], fault: str | None) -> None:
    assert misshapen({**EMPTY, **said}) == fault


def test_the_file_is_named(tmp_path: Path) -> None:
    Workspace(str(tmp_path)).prepare().publish([], [], {**EMPTY, "copies": "broker-1"})
    with pytest.raises(WorkspaceError, match=r"manifest\.json is damaged: copies is no list"):
        Workspace(str(tmp_path)).manifest()
