"""A workspace is finished or says that it is not, and is never written over something else."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.errors import InputNotRecognizedError, OutputRefusedError, WorkspaceError
from analytics.workspace import PIECES, Part, Staging, Workspace
from tests.support.written_workspace import EMPTY


def part(staging: Staging, table: str, rows: int) -> Part:
    folder = Path(staging.location)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{table.replace('/', '.')}-{rows}.parquet"
    pq.write_table(pa.table({"row": list(range(rows))}), path)
    return Part(table, str(path), rows)


def inodes(folder: Path) -> dict[str, int]:
    """Return which file lies at which place."""
    files = folder.rglob("*.parquet")
    return {str(each.relative_to(folder)): each.stat().st_ino for each in files}


def publish(location: Path, *rows: int) -> None:
    staging = Workspace(str(location)).prepare()
    parts = [part(staging, "decoded/offset_commit", count) for count in rows]
    staging.publish(parts, ["decoded", "diverged"], EMPTY)


def test_a_finished_run_leaves_its_tables_and_its_manifest_and_nothing_else(tmp_path: Path) -> None:
    publish(tmp_path / "out", 3, 4)
    manifest = Workspace(str(tmp_path / "out")).manifest()
    assert {*manifest["files"]} == {
        f"decoded/offset_commit/part-0000{number}.parquet" for number in (0, 1)
    }
    assert {**manifest, "files": {}} == {**EMPTY, "files": {}}
    assert pq.read_table(tmp_path / "out/decoded/offset_commit").num_rows == 7
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {".groupscope", "manifest.json", "decoded"}


def test_a_second_run_replaces_the_first(tmp_path: Path) -> None:
    publish(tmp_path, 5)
    publish(tmp_path, 2)
    assert pq.read_table(tmp_path / "decoded/offset_commit").num_rows == 2


def test_files_that_a_run_keeps_stay_as_they_are(tmp_path: Path) -> None:
    first = Workspace(str(tmp_path)).prepare()
    names = ("evaluations/lag", "evaluations/lag", "evaluations/usage", "evaluations/usage-old")
    first.publish([part(first, name, rows) for rows, name in enumerate(names, 1)], [], {})
    files = inodes(tmp_path)
    second = Workspace(str(tmp_path)).prepare()
    kept = Part("evaluations/lag", str(tmp_path / "evaluations/lag/part-00000.parquet"), 0)
    moved = Part("evaluations/usage", str(tmp_path / "evaluations/lag/part-00001.parquet"), 1)
    second.publish([kept, moved, part(second, "evaluations/lag", 7)], ["evaluations"], {})
    now = inodes(tmp_path)
    first_of_lag = "evaluations/lag/part-00000.parquet"
    assert now.keys() == {
        first_of_lag,
        "evaluations/lag/part-00001.parquet",
        "evaluations/usage/part-00000.parquet",
    }
    assert now[first_of_lag] == files[first_of_lag]
    assert (
        now["evaluations/usage/part-00000.parquet"] == files["evaluations/lag/part-00001.parquet"]
    )
    assert pq.read_table(tmp_path / "evaluations/lag").num_rows == 1 + 7
    assert not (tmp_path / "evaluations/usage-old").exists()


@pytest.mark.parametrize(
    "folders",
    [
        ("evaluations",),
        ("evaluations/lag",),
        ("evaluations/lag", "state"),
        ("state", "evaluations"),
        ("diverged",),
    ],
)
@pytest.mark.parametrize("is_store", [False, True])
def test_the_files_of_folders_are_those_below_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_store: bool, folders: tuple[str, ...]
) -> None:
    space = Workspace(str(tmp_path))
    staging, names = space.prepare(), ("evaluations/lag", "evaluations/lag-2", "state/groups")
    staging.publish([part(staging, name, rows) for rows, name in enumerate(names, 1)], [], {})
    every = {f"{name}/part-00000.parquet" for name in names}
    if is_store:
        monkeypatch.setattr("analytics.workspace.MOVES_FOLDERS", ())
    found = space.sizes_in(folders)
    assert found.keys() == {
        name for name in every if any(name.startswith(f"{each}/") for each in folders)
    }
    assert all(size == (tmp_path / name).stat().st_size for name, size in found.items())


def test_a_run_that_was_cut_off_is_no_workspace(tmp_path: Path) -> None:
    publish(tmp_path, 5)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(WorkspaceError, match=r"no run ever finished"):
        Workspace(str(tmp_path)).manifest()


def test_parts_of_attempts_that_failed_are_never_published(tmp_path: Path) -> None:
    staging = Workspace(str(tmp_path)).prepare()
    part(staging, "decoded/offset_commit", 9)
    staging.publish([part(staging, "decoded/offset_commit", 1)], ["decoded"], {})
    assert pq.read_table(tmp_path / "decoded/offset_commit").num_rows == 1


def test_what_a_killed_run_left_is_swept_away_by_the_next(tmp_path: Path) -> None:
    left = Workspace(str(tmp_path)).prepare()
    part(left, "decoded/offset_commit", 9)
    publish(tmp_path, 1)
    assert not Path(left.location).exists()


def test_what_tables_were_made_of_goes_with_a_manifest_that_does_not_vouch_for_it(
    tmp_path: Path,
) -> None:
    publish(tmp_path, 1)
    (tmp_path / PIECES).write_text("broker-1.acme.example")
    publish(tmp_path, 2)
    assert not (tmp_path / PIECES).exists()


def test_a_manifest_has_names_of_files_that_are_no_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"broker-\xff")
    staging = Workspace(str(tmp_path)).prepare()
    staging.publish([], ["decoded"], {**EMPTY, "created_from": [name]})
    assert Workspace(str(tmp_path)).manifest()["created_from"] == [name]


def test_a_table_that_is_not_replaced_stays(tmp_path: Path) -> None:
    staging = Workspace(str(tmp_path)).prepare()
    parts = [part(staging, "decoded/a", 1), part(staging, "state/b", 1)]
    staging.publish(parts, ["decoded"], {})
    publish(tmp_path, 2)
    assert (tmp_path / "state/b").is_dir()
    assert not (tmp_path / "decoded/a").exists()


@pytest.mark.parametrize("name", ["notes.txt", ".hidden"])
def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(OutputRefusedError, match=r"is not empty and is no workspace"):
        Workspace(str(tmp_path)).prepare()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(OutputRefusedError, match=r"is a file"):
        Workspace(str(tmp_path / "out")).prepare()


def test_a_uri_of_no_known_scheme_is_refused() -> None:
    with pytest.raises(InputNotRecognizedError, match=r"nothing here opens URIs of nothing:"):
        Workspace("nothing://here/out")


@pytest.mark.parametrize("version", [0, 1, 2, None, "3"])
def test_a_workspace_of_another_schema_version_is_refused(tmp_path: Path, version: object) -> None:
    Workspace(str(tmp_path)).prepare().publish(
        [], [], {"schema_version": version, "groupscope_version": "9.9"}
    )
    with pytest.raises(WorkspaceError, match=rf"schema version {version}.*9\.9.*make it again"):
        Workspace(str(tmp_path)).manifest()


def answers(folder: Path) -> list[str]:
    """Return files of answers, and a person's own beside them."""
    names = [
        *("summary.json", "findings.jsonl", "incident.json"),
        *("report/index.html", "report/incident.html", "restore/undo.sh", "restore/restore.json"),
        *("report/mine.html", "restore/mine.csv", "notes.txt"),
    ]
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text('{"files": ["undo.sh", "../notes.txt"]}')
    return names


def test_answers_go_with_the_tables_they_were_made_of(tmp_path: Path) -> None:
    publish(tmp_path, 1)
    names = answers(tmp_path)
    Workspace(str(tmp_path)).prepare().publish([], ["evaluations"], {})
    assert all((tmp_path / name).exists() for name in names)
    publish(tmp_path, 2)
    left = {name for name in names if (tmp_path / name).exists()}
    assert left == {"report/mine.html", "restore/mine.csv", "notes.txt"}


def test_one_folder_under_two_names_is_the_same_workspace(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    out, link = Workspace(str(tmp_path / "out")), Workspace(f"{tmp_path}/./link")
    assert out.is_same_as(link)
    assert not out.is_same_as(Workspace(str(tmp_path)))
