"""Evaluations that are kept in a workspace, beside those of other questions."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.errors import WorkspaceError
from analytics.replayed.replayed_workspace import keep_evaluations, replayed_instant
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import FOLDERS, Part, Workspace
from jobs.workspaces.replayed import Replayed
from tests.support.written_workspace import EMPTY

SAID = {"time": "2026-11-21T09:12:30.000Z", "offsets": {"__consumer_offsets-17": 4711}}
CHURN = "evaluations/group_churn"
REPLAY = {"as_of": SAID, "kafka_version": "4.3"}


def replayed_in(folder: Path) -> Replayed:
    space = Workspace(str(folder))
    manifest = {**EMPTY, "replay": REPLAY}
    space.prepare()
    space.write("manifest.json", json.dumps(manifest))
    return Replayed(StoredTables(space), space, manifest, inputs=(str(folder),))


def rows(*groups: str) -> pa.Table:
    return pa.table({"group_id": list(groups)})


def read(folder: Path, name: str) -> list[str]:
    found: list[str] = pq.read_table(folder / "evaluations" / name, partitioning=None)[
        "group_id"
    ].to_pylist()
    return found


def test_a_question_keeps_what_others_left(tmp_path: Path) -> None:
    replayed = replayed_in(tmp_path / "out")
    space = replayed.tables.workspace
    keep_evaluations(
        space, {"group_churn": rows("a"), "rebalances": rows("a", "a")}, replayed, "rebalances"
    )
    again = Replayed(replayed.tables, space, space.manifest(), inputs=replayed.inputs)
    keep_evaluations(space, {"rebalances": rows("b")}, again, "rebalances")
    assert read(tmp_path / "out", "group_churn") == ["a"]
    assert read(tmp_path / "out", "rebalances") == ["b"]
    kept = space.manifest()["evaluations"]
    assert {name: each["rows"] for name, each in kept.items()} == {
        "group_churn": 1,
        "rebalances": 1,
    }
    assert kept["rebalances"]["as_of"] == SAID
    assert "replay" in space.manifest()


def test_files_that_others_left_stay_where_they_are(tmp_path: Path) -> None:
    """Of a run that is cut off nothing may be missing that it did not make."""
    replayed = replayed_in(tmp_path)
    space, many = replayed.tables.workspace, range(40)
    staging = space.prepare()
    Path(staging.location).mkdir()
    parts = [Part(CHURN, f"{staging.location}/{number}", 1) for number in many]
    for number, part in enumerate(parts):
        pq.write_table(rows(str(number)), part.path)
    kept = {"group_churn": {"as_of": SAID, "kafka_version": "4.3", "rows": len(many)}}
    staging.publish(parts, [], {**replayed.manifest, "evaluations": kept})
    before = {each: each.stat().st_ino for each in tmp_path.glob(f"{CHURN}/*")}
    keep_evaluations(space, {"rebalances": rows("a")}, replayed, "rebalances")
    assert {each: each.stat().st_ino for each in tmp_path.glob(f"{CHURN}/*")} == before
    assert read(tmp_path, "group_churn") == [str(number) for number in many]


def test_nobody_vouches_for_what_a_run_left_that_was_cut_off(tmp_path: Path) -> None:
    replayed = replayed_in(tmp_path / "out")
    space = replayed.tables.workspace
    space.remove("manifest.json")
    with pytest.raises(WorkspaceError, match="no run ever finished in it"):
        keep_evaluations(space, {"rebalances": rows("a")}, replayed, "rebalances")
    assert [each.name for each in (tmp_path / "out").iterdir()] == [".groupscope"]


def test_a_workspace_of_evaluations_alone_claims_no_state(tmp_path: Path) -> None:
    replayed = replayed_in(tmp_path / "asked")
    other = Workspace(str(tmp_path / "out"))
    keep_evaluations(other, {"rebalances": rows("a")}, replayed, "rebalances")
    assert "replay" not in other.manifest()
    assert read(tmp_path / "out", "rebalances") == ["a"]


def test_what_a_workspace_holds_of_another_dump_goes(tmp_path: Path) -> None:
    replayed = replayed_in(tmp_path / "asked")
    other = Workspace(str(tmp_path / "out"))
    staging = other.prepare()
    parts = [
        Part(f"{folder}/table", f"{staging.location}/{folder}", 1)
        for folder in ("decoded", "diverged", "data_logs", "state", "evaluations")
    ]
    Path(staging.location).mkdir()
    for part in parts:
        pq.write_table(rows("of the other"), part.path)
    staging.publish(parts, FOLDERS, {**EMPTY, "created_from": ["another"], "replay": REPLAY})
    keep_evaluations(other, {"rebalances": rows("a")}, replayed, "rebalances")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        ".groupscope",
        "manifest.json",
        "evaluations",
    }
    assert [path.name for path in (tmp_path / "out/evaluations").iterdir()] == ["rebalances"]
    assert other.manifest()["created_from"] == ["dump"]


def test_what_a_workspace_holds_of_the_same_dump_stays(tmp_path: Path) -> None:
    replayed = replayed_in(tmp_path / "asked")
    other = Workspace(str(tmp_path / "out"))
    other.prepare().publish([], [], {**EMPTY, "replay": {**REPLAY, "kafka_version": "4.0"}})
    (tmp_path / "out/state").mkdir()
    keep_evaluations(other, {"rebalances": rows("a")}, replayed, "rebalances")
    assert other.manifest()["replay"] == {**REPLAY, "kafka_version": "4.0"}
    assert (tmp_path / "out/state").is_dir()


def test_the_instant_of_a_manifest_is_that_of_the_replay() -> None:
    instant = replayed_instant(SAID)
    assert instant.timestamp_ms == 1795252350000
    assert instant.offsets == {("__consumer_offsets", 17): 4711}
    assert replayed_instant({"time": None, "offsets": {}}).is_end
