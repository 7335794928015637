"""Tables of whole groups, some at a time, are together what they are at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from analytics.contracts import table_of_frame
from analytics.decode.selection import Selection, names_wanted
from analytics.engine.part_runs import PartAnswer, PartRunner
from analytics.replayed.group_rows import GroupRows, PartedGroups, StoredGroups
from analytics.replayed.whole_groups import stored_parts, whole_group_parts
from analytics.tables.buckets import GroupBucket
from analytics.tables.parquet_frames import frames_of_file
from analytics.tables.parted_table import BY_GROUP, PartedTable
from analytics.tables.stored_tables import StoredTables, folder_of, write_parts, write_rows
from analytics.workspace import Workspace
from tests.support.contract_rows import rows_of
from tests.support.examples import examples

SIZES = {"a": 1, "b": 5, "c": 2, "d": 1, "é": 3, "z": 2}
"""Epochs of each group; one has more than are read at once."""
NEEDED = {"groups": ("group_id",), "group_epochs": ("group_id", "epoch")}


def rows(name: str, sizes: Mapping[str, int]) -> pa.Table:
    found: list[dict[str, Any]] = [{"group_id": group} for group in sizes if group != "z"]
    if name == "group_epochs":
        found = [
            {"group_id": group, "epoch": number, "from_offset": number}
            for group, size in sizes.items()
            for number in range(size)
        ]
    return table_of_frame(name, rows_of(name, found))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return one whose tables are a file each, which says nothing of groups."""
    space = Workspace(str(tmp_path_factory.mktemp("workspace")))
    staging = space.prepare()
    parts = [write_rows(staging, name, rows(name, SIZES)) for name in NEEDED]
    staging.publish(parts, ["state", "history"], {})
    return space


def write_labelled(path: Path, rows: pa.Table, groups: GroupBucket) -> None:
    """Write a file as a task of a replay does: Arrow takes its metadata for that of its schema."""
    with pq.ParquetWriter(path, rows.schema, store_schema=False) as file:
        file.write_table(rows)
        file.add_key_value_metadata(groups.label_of(pl.DataFrame(pl.from_arrow(rows))))


def in_buckets(root: Path, parts: Mapping[str, int]) -> Workspace:
    """Return one with a file a bucket, each of which says its groups; a table has so many."""
    for name, count in parts.items():
        folder = root / folder_of(name)
        folder.mkdir(parents=True)
        every = pl.DataFrame(pl.from_arrow(rows(name, SIZES)))
        for number in range(count):
            groups = GroupBucket(number, count)
            some = every.filter(groups.has(pl.col("group_id")))
            if some.height:
                path = folder / f"part-{number}.parquet"
                write_labelled(path, table_of_frame(name, some), groups)
    return Workspace(str(root))


@pytest.fixture(scope="module")
def bucketed(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return in_buckets(tmp_path_factory.mktemp("bucketed"), {"groups": 4, "group_epochs": 4})


def counts(parts: Sequence[Mapping[str, pl.DataFrame]], name: str) -> list[Counter[str]]:
    return [Counter(each[name]["group_id"].to_list()) for each in parts]


def all_of(
    space: Workspace, at_once: int, wanted: Selection | None = None
) -> list[dict[str, pl.DataFrame]]:
    tables = StoredTables(space) if wanted is None else StoredTables(space, wanted)
    with stored_parts(tables, NEEDED, at_once) as parts:
        return [dict(each.read()) for each in parts]


def test_few_rows_are_read_at_once(workspace: Workspace) -> None:
    (found,) = all_of(workspace, 100)
    assert counts([found], "group_epochs") == [Counter(SIZES)]


@pytest.mark.parametrize("at_once", [1, 3, 6])
@pytest.mark.parametrize("kind", ["workspace", "bucketed"])
def test_every_group_is_whole_in_one_part(
    request: pytest.FixtureRequest, kind: str, at_once: int
) -> None:
    found = all_of(request.getfixturevalue(kind), at_once)
    assert len(found) > 1
    epochs = counts(found, "group_epochs")
    assert sum(epochs, Counter()) == Counter(SIZES)
    for group, size in SIZES.items():
        assert [each[group] for each in epochs if group in each] == [size]
    for groups, some in zip(counts(found, "groups"), epochs, strict=True):
        assert groups.keys() == some.keys() - {"z"}


@pytest.mark.parametrize("kind", ["workspace", "bucketed"])
def test_groups_that_are_not_asked_about_are_not_read(
    request: pytest.FixtureRequest, kind: str
) -> None:
    found = all_of(request.getfixturevalue(kind), 3, Selection(("b", "z")))
    assert sum(counts(found, "group_epochs"), Counter()) == Counter({"b": 5, "z": 2})


def test_one_group_of_many_is_read_at_once(bucketed: Workspace) -> None:
    assert len(all_of(bucketed, 3, Selection(("c",)))) == 1


def test_files_that_say_their_groups_are_read_once_and_laid_out_nowhere(
    bucketed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.replayed.whole_groups._laid_out", None)
    read: Counter[str] = Counter()

    def counted(path: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        read[path] += 1
        return frames_of_file(path, columns)

    monkeypatch.setattr("analytics.replayed.group_rows.frames_of_file", counted)
    tables = StoredTables(bucketed)
    with stored_parts(tables, NEEDED, 8) as parts:
        assert [each.groups for each in parts] == [GroupBucket(number, 4) for number in range(4)]
        for each in parts:
            dict(each.read())
    files = [path for name in NEEDED for path in tables.files(name)]
    assert read == Counter(files)


def test_a_bucket_with_many_rows_is_read_in_several_parts(bucketed: Workspace) -> None:
    with stored_parts(StoredTables(bucketed), NEEDED, 1) as parts:
        assert len(parts) % 4 == 0
        assert len(parts) > 4
        for each in parts:
            assert each.groups is not None
            assert (
                each.read()["group_epochs"].filter(~each.groups.has(pl.col("group_id"))).is_empty()
            )


@pytest.mark.parametrize(
    "parts", [{"groups": 4, "group_epochs": 3}, {"groups": 2, "group_epochs": 4}]
)
def test_tables_that_are_divided_otherwise_come_together(
    tmp_path: Path, parts: dict[str, int]
) -> None:
    found = all_of(in_buckets(tmp_path, parts), 3)
    assert len(found) > 1
    for groups, epochs in zip(counts(found, "groups"), counts(found, "group_epochs"), strict=True):
        assert groups.keys() == epochs.keys() - {"z"}
    assert sum(counts(found, "group_epochs"), Counter()) == Counter(SIZES)


def _with_lengths(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    made = rows["group_epochs"].group_by("group_id", maintain_order=True).len("epoch")
    return PartAnswer({"lengths": made})


@examples(
    4, 20, buckets=st.integers(1, 9), at_once=st.integers(1, 30), has_loose_rows=st.booleans()
)
def test_what_is_made_of_a_part_is_read_with_the_same_groups_again(
    buckets: int, at_once: int, has_loose_rows: bool
) -> None:
    """Rows of files, of an answer made of them, and of what nobody has in files come together."""
    with TemporaryDirectory() as root, TemporaryDirectory() as folder:
        made_of = {"groups": buckets, "group_epochs": buckets}
        tables = StoredTables(in_buckets(Path(root), made_of))
        with stored_parts(tables, NEEDED, at_once) as parts:
            answer = PartRunner(folder).run(_with_lengths, parts, {"lengths": BY_GROUP})
        lengths = answer.tables["lengths"]
        loose = pl.DataFrame({"group_id": [*SIZES], "place": range(len(SIZES))})
        sources: dict[str, Any] = {
            "groups": StoredGroups(tables, "groups", ["group_id"]),
            "lengths": PartedGroups(lengths, ["group_id", "epoch"]),
        }
        if has_loose_rows:
            sources["loose"] = GroupRows([loose.clear(), loose], pl.col("group_id"))
        with whole_group_parts(sources, at_once, count=len(SIZES) * has_loose_rows) as parts:
            found = [dict(each.read()) for each in parts]
    every = pl.concat(each["lengths"] for each in found)
    assert dict(every.rows()) == SIZES
    for each in found:
        here = {*each["lengths"]["group_id"]}
        assert {*each["groups"]["group_id"]} == here - {"z"}
        if has_loose_rows:
            assert {*each["loose"]["group_id"]} == here


# What makes a file's word untrue, or its lack a matter.


def test_tables_of_before_and_after_a_new_release_come_together(tmp_path: Path) -> None:
    """A table whose files say nothing, another that says it, and one of which some files do."""
    space = in_buckets(tmp_path, {"groups": 1, "group_epochs": 4})
    for name, path in (("groups", "part-0"), ("group_epochs", "part-2")):
        file = tmp_path / folder_of(name) / f"{path}.parquet"
        pq.write_table(pq.read_table(file, partitioning=None).replace_schema_metadata(None), file)
    for at_once in (1, 3, 8):
        found = all_of(space, at_once)
        assert len(found) > 1
        epochs = counts(found, "group_epochs")
        assert sum(epochs, Counter()) == Counter(SIZES)
        for groups, some in zip(counts(found, "groups"), epochs, strict=True):
            assert groups.keys() == some.keys() - {"z"}


def _with_rows_of_others(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    own = rows["groups"].select("group_id", pl.lit("own").alias("of"))
    others = pl.DataFrame(
        {"group_id": [None, "a", "elsewhere"]}, {"group_id": pl.String}
    ).with_columns(pl.lit("others").alias("of"))
    return PartAnswer({"rows": pl.concat([own, others])})


@examples(
    4,
    20,
    buckets=st.integers(2, 6),
    made_at_once=st.integers(1, 12),
    read_at_once=st.integers(1, 30),
)
def test_rows_of_other_groups_and_of_none_are_neither_lost_nor_doubled(
    buckets: int, made_at_once: int, read_at_once: int
) -> None:
    with TemporaryDirectory() as root, TemporaryDirectory() as folder:
        tables = StoredTables(in_buckets(Path(root), {"groups": buckets, "group_epochs": buckets}))
        with stored_parts(tables, NEEDED, made_at_once) as parts:
            answer = PartRunner(folder).run(_with_rows_of_others, parts, {"rows": BY_GROUP})
            made = len(parts)
        sources = {
            "groups": StoredGroups(tables, "groups", ["group_id"]),
            "rows": PartedGroups(answer.tables["rows"], ["group_id", "of"]),
        }
        with whole_group_parts(sources, read_at_once) as parts:
            found = [dict(each.read()) for each in parts]
    every = pl.concat(each["rows"] for each in found)
    assert Counter(every.filter(of="own")["group_id"].to_list()) == Counter(SIZES.keys() - {"z"})
    others = Counter(every.filter(of="others")["group_id"].to_list())
    assert others == Counter(dict.fromkeys((None, "a", "elsewhere"), made))
    for group in (None, "a", "elsewhere"):
        has = pl.col("group_id").eq_missing(pl.lit(group, pl.String))
        assert sum(not each["rows"].filter(has).is_empty() for each in found) == 1
    for each in found:
        own = each["rows"].filter(of="own")["group_id"].to_list()
        assert sorted(own) == sorted(each["groups"]["group_id"].to_list())


def test_rows_that_were_read_of_a_bucket_are_written_without_its_word(
    bucketed: Workspace, tmp_path: Path
) -> None:
    """Arrow hands on what the first of several files says, and would write it into another."""
    read = StoredTables(bucketed).read("group_epochs")
    assert read.num_rows == sum(SIZES.values())
    assert read.schema.metadata, "else there is nothing to hand on"
    space = Workspace(str(tmp_path))
    staging = space.prepare()
    as_pieces = PartedTable.held(read).where(pl.col("epoch") >= 0)
    parts = [write_rows(staging, "group_epochs", read)]
    parts += write_parts(staging, "group_epochs", PartedTable.held(read))
    parts += write_parts(staging, "group_epochs", as_pieces)
    for each in parts:
        assert GroupBucket.of_file(pq.read_metadata(each.path).metadata) is None


def test_few_rows_of_few_buckets_do_not_decide_how_many_are_held(tmp_path: Path) -> None:
    """A small table in two parts is laid out; the large one is not read in halves for it."""
    tables = StoredTables(in_buckets(tmp_path, {"groups": 2, "group_epochs": 4}))
    with stored_parts(tables, NEEDED, 4) as parts:
        assert [each.groups for each in parts] == [GroupBucket(number, 4) for number in range(4)]


def test_patterns_are_matched_to_names_once_and_not_file_by_file(bucketed: Workspace) -> None:
    module = "analytics.tables.stored_tables.names_wanted"
    with mock.patch(module, wraps=names_wanted) as matched:
        found = all_of(bucketed, 3, Selection(("[b-z]",), ("d",)))
    assert len(found) > 1
    assert matched.call_count == len(NEEDED)
    assert sum(counts(found, "group_epochs"), Counter()) == Counter({"b": 5, "c": 2, "z": 2})


def test_what_a_file_lacks_and_nobody_asks_for_is_not_missed(tmp_path: Path) -> None:
    space = in_buckets(tmp_path, {"groups": 2, "group_epochs": 2})
    for path in (tmp_path / folder_of("group_epochs")).iterdir():
        groups = GroupBucket.of_file(pq.read_metadata(path).metadata)
        assert groups is not None
        rows = pq.read_table(path, partitioning=None).drop_columns(["from_offset"])
        write_labelled(path, rows, groups)
    assert sum(counts(all_of(space, 3), "group_epochs"), Counter()) == Counter(SIZES)
