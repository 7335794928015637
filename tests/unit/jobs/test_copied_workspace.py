"""A copied workspace is the copied one alone, whatever was in the folder before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.errors import WorkspaceError
from analytics.tables.decoded_records import has_records, records_folder
from analytics.workspace import FOLDERS, Part, Workspace
from jobs.workspaces.kept_replay import copy_workspace
from tests.support.written_workspace import EMPTY

REPLAY = {"as_of": {"time": None, "offsets": {}}, "kafka_version": "4.3"}


def workspace(folder: Path, folders: Iterable[str], name: str, **manifest: object) -> Workspace:
    """Write a workspace with a table in each of some folders."""
    space = Workspace(str(folder))
    staging = space.prepare()
    Path(staging.location).mkdir()
    parts = [Part(f"{each}/{name}", f"{staging.location}/{each}", 1) for each in folders]
    for part in parts:
        pq.write_table(pa.table({"of": [name]}), part.path)
    said = {**EMPTY, "created_from": [name], **manifest}
    staging.publish(parts, FOLDERS, said)
    return space


def tables(space: Workspace) -> set[str]:
    root = Path(space.root)
    return {str(path.parent.relative_to(root)) for path in root.rglob("*.parquet")}


def test_nothing_of_what_was_there_is_left(tmp_path: Path) -> None:
    target = workspace(tmp_path / "out", FOLDERS, "old")
    (tmp_path / "out/summary.json").write_text("{}")
    source = workspace(tmp_path / "asked", ("state", "history", "evaluations"), "new")
    (tmp_path / "asked/summary.json").write_text("{}")
    copy_workspace(source, target.location)
    assert tables(target) == {"state/new", "history/new"}
    of_source, of_target = source.manifest(), target.manifest()
    assert {name.partition("/")[0] for name in of_target.pop("files")} == {"state", "history"}
    assert len(of_source.pop("files")) == 3
    assert of_target == of_source
    assert not (tmp_path / "out/summary.json").exists()
    assert tables(source) == {"state/new", "history/new", "evaluations/new"}


@pytest.mark.parametrize("name", ["asked", "link", "asked/../asked"])
def test_a_workspace_is_not_copied_onto_itself(tmp_path: Path, name: str) -> None:
    source = workspace(tmp_path / "asked", FOLDERS, "new")
    (tmp_path / "link").symlink_to("asked")
    copy_workspace(source, str(tmp_path / name))
    assert len(tables(source)) == len(FOLDERS)


def test_a_folder_within_the_workspace_gets_its_tables_alone(tmp_path: Path) -> None:
    source = workspace(tmp_path / "asked", ("state",), "new")
    copy_workspace(source, str(tmp_path / "asked/inside"))
    copy_workspace(source, str(tmp_path / "asked/inside"))
    assert tables(Workspace(str(tmp_path / "asked/inside"))) == {"state/new"}


def test_records_that_were_replayed_elsewhere_stay_where_they_were_decoded(
    tmp_path: Path,
) -> None:
    decoded = workspace(tmp_path / "decoded", ("decoded", "data_logs"), "dump")
    replay = {**REPLAY, "decoded_in": decoded.root}
    source = workspace(tmp_path / "asked", ("state",), "dump", replay=replay)
    copy_workspace(source, decoded.location)
    assert tables(decoded) == {"decoded/dump", "data_logs/dump", "state/dump"}


def test_records_that_are_gone_are_not_taken_for_none(tmp_path: Path) -> None:
    replay = {**REPLAY, "decoded_in": str(tmp_path / "gone")}
    source = workspace(tmp_path / "asked", ("state",), "dump", replay=replay)
    assert not has_records(source)
    with pytest.raises(WorkspaceError, match=r"no decoded records: they were in .*/gone"):
        records_folder(source, "decoded/offset_commit")
    with_some = workspace(tmp_path / "decoded", ("decoded",), "offset_commit")
    assert records_folder(with_some, "decoded/group_metadata") is None
