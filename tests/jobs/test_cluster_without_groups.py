"""The snapshot of a cluster that never had a group, held against it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from analytics.dump.files.cluster_answers import ANSWER_FILES, ANSWERS, answers_in_file
from analytics.questions.cluster.question import CLUSTER, ClusterSettings
from analytics.snapshot.looks import TOPICS
from groupscope import open_dump
from tests.support.recorded_cluster import snapshot_of_recording

if TYPE_CHECKING:
    from tests.conftest import Groupscope

FIRST = ANSWER_FILES[0]


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, groupscope: Groupscope) -> Path:
    """The recorded cluster's snapshot."""
    return snapshot_of_recording(groupscope, tmp_path_factory.mktemp("snapshot") / "dump")


def without_logs_of_groups(taken: Path, out: Path) -> Path:
    """The snapshot of a cluster that never had a group."""
    shutil.copytree(taken, out)
    snapshot = json.loads((out / "snapshot.json").read_bytes())
    for topic in TOPICS:
        for each in out.glob(f"{topic}-*"):
            shutil.rmtree(each)
        for of_topics in ("logs", "topics"):
            snapshot[of_topics] = [each for each in snapshot[of_topics] if each["topic"] != topic]
    (out / "snapshot.json").write_text(json.dumps(snapshot | {"groups": []}))
    return out


def test_a_cluster_without_groups_was_held_against_all_the_same(
    taken: Path, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = answers_in_file(str(taken / FIRST), 1).to_pylist()
    (looked,) = [each for each in rows if each["kind"] == "look"]
    assert (looked["value"], looked["error"]) == ("answered", None)
    out = without_logs_of_groups(taken, tmp_path / "dump")
    with ipc.new_file(str(out / FIRST), ANSWERS) as writer:
        writer.write_table(pa.Table.from_pylist([looked], ANSWERS))
    with open_dump(str(out)) as opened:
        answer = CLUSTER.ask(opened.replay().replayed, ClusterSettings())
    assert answer.tables["cluster_differences"].num_rows == 0
    assert [each[:12] for each in answer.statements] == ["held against"]
