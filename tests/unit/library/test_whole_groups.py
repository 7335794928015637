"""Tables of whole groups, some at a time, are together what they are at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.contracts import table_of_frame
from analytics.decode.selection import Selection
from analytics.replayed.whole_groups import group_reads, stored_parts, whole_files
from analytics.tables.staged_tables import write_rows
from analytics.tables.stored_tables import StoredTables, folder_of
from analytics.workspace import Workspace
from tests.support.contract_rows import rows_of

SIZES = {"a": 1, "b": 5, "c": 2, "d": 1, "é": 3, "z": 2}
"""Epochs of each group; one has more than are read at once."""
NEEDED = {"groups": ("group_id",), "group_epochs": ("group_id", "epoch")}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    space = Workspace(str(tmp_path_factory.mktemp("workspace")))
    epochs = [
        {"group_id": group, "epoch": number, "from_offset": number}
        for group, size in SIZES.items()
        for number in range(size)
    ]
    made = {
        "groups": rows_of("groups", ({"group_id": group} for group in SIZES if group != "z")),
        "group_epochs": rows_of("group_epochs", epochs),
    }
    staging = space.prepare()
    parts = [write_rows(staging, name, table_of_frame(name, rows)) for name, rows in made.items()]
    staging.publish(parts, ["state", "history"], {})
    return space


def counts(buckets: list[dict[str, pl.DataFrame]], name: str) -> list[Counter[str]]:
    return [Counter(each[name]["group_id"].to_list()) for each in buckets]


def test_few_rows_are_read_at_once(workspace: Workspace) -> None:
    (bucket,) = group_reads(StoredTables(workspace), NEEDED)
    assert counts([bucket()], "group_epochs") == [Counter(SIZES)]


@pytest.mark.parametrize("at_once", [1, 3, 6])
def test_every_group_is_whole_in_one_bucket(workspace: Workspace, at_once: int) -> None:
    buckets = [each() for each in group_reads(StoredTables(workspace), NEEDED, at_once)]
    assert len(buckets) > 1
    found = counts(buckets, "group_epochs")
    assert sum(found, Counter()) == Counter(SIZES)
    for group, size in SIZES.items():
        assert [each[group] for each in found if group in each] == [size]
    for groups, epochs in zip(counts(buckets, "groups"), found, strict=True):
        assert groups.keys() == epochs.keys() - {"z"}
        rows = groups + epochs
        assert sum(rows.values()) - rows[max(rows)] < at_once


def test_groups_that_are_not_asked_about_are_not_read(workspace: Workspace) -> None:
    tables = StoredTables(workspace, Selection(("b", "z")))
    found = counts([each() for each in group_reads(tables, NEEDED, 3)], "group_epochs")
    assert sum(found, Counter()) == Counter({"b": 5, "z": 2})


FILES = {"groups": ["a b", "c", "d z", "é"], "group_epochs": ["z", "a", "b c", "d", ""]}
"""The groups in each file; together are a, b and c, and d and z."""


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root = tmp_path_factory.mktemp("many")
    for name, files in FILES.items():
        folder = root / folder_of(name)
        folder.mkdir(parents=True)
        for number, groups in enumerate(files):
            rows = ({"group_id": each, "epoch": 1, "from_offset": 1} for each in groups.split())
            made = table_of_frame(name, rows_of(name, rows))
            pq.write_table(made, folder / f"part-{number}.parquet")
    return Workspace(str(root))


def test_files_that_share_no_group_are_read_by_themselves(many_files: Workspace) -> None:
    tables = StoredTables(many_files)
    lots = whole_files(tables, ["groups", "group_epochs"], 6)
    assert sorted([len(files) for files in each.files.values()] for each in lots) == [
        [2, 2],
        [2, 3],
    ]
    found = [each() for each in group_reads(tables, NEEDED, 6)]
    seen = [{*each["groups"]["group_id"], *each["group_epochs"]["group_id"]} for each in found]
    assert sorted(map(sorted, seen)) == [["a", "b", "c"], ["d", "z", "é"]]
    assert sum(counts(found, "group_epochs"), Counter()) == Counter("abcdz")


def test_files_with_too_many_rows_are_read_by_groups(many_files: Workspace) -> None:
    tables = StoredTables(many_files)
    lots = whole_files(tables, ["groups", "group_epochs"], 1)
    assert sorted(each.rows for each in lots) == [1, 4, 6]
    found = counts([each() for each in group_reads(tables, NEEDED, 1)], "group_epochs")
    assert len(found) > len(lots)
    assert sum(found, Counter()) == Counter("abcdz")
    asked = StoredTables(many_files, Selection(("a", "c", "z")))
    found = counts([each() for each in group_reads(asked, NEEDED, 1)], "group_epochs")
    assert sum(found, Counter()) == Counter("acz")


def test_no_file_is_read_for_groups_that_others_hold(
    many_files: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many files that each share groups with few others, none is read for all parts."""
    read: Counter[str] = Counter()
    parts = group_reads(StoredTables(many_files), NEEDED, 1)
    whole = StoredTables.read

    def counted(self: StoredTables, *args: Any, **named: Any) -> pa.Table:
        files = named.get("files") or (args[3] if len(args) > 3 else None)
        assert files is not None
        read.update(files)
        return whole(self, *args, **named)

    monkeypatch.setattr(StoredTables, "read", counted)
    for each in parts:
        each()
    assert max(read.values()) < len(parts)


@pytest.mark.parametrize("at_once", [1, 3, 6, 100])
def test_tables_come_in_whole_groups_however_their_files_lie(
    many_files: Workspace, workspace: Workspace, at_once: int
) -> None:
    for space, sizes in ((many_files, Counter("abcdz")), (workspace, Counter(SIZES))):
        with stored_parts(StoredTables(space), NEEDED, at_once) as parts:
            found = [each() for each in parts]
        epochs = counts(found, "group_epochs")
        assert sum(epochs, Counter()) == sizes
        seen = [{*each["groups"]["group_id"], *each["group_epochs"]["group_id"]} for each in found]
        assert sum(map(len, seen)) == len(set().union(*seen))
        assert len(parts) == 1 or at_once < 100
