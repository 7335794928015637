"""A table of any size holds what is expected, or does not, whatever is looked at together."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analytics.questions.data_quality import judged_table, question
from analytics.questions.data_quality.question import data_quality_of
from analytics.workspace import Workspace
from schemas.expectation_suites import Expectation


def rewritten(folder: Path, rows: pa.Table, files: int) -> None:
    """Write a table anew, each group into one of some files."""
    shutil.rmtree(folder)
    folder.mkdir()
    groups = pc.unique(rows["group_id"])
    for number in range(files):
        mine = pc.is_in(rows["group_id"], groups.take(list(range(number, len(groups), files))))
        pq.write_table(rows.filter(mine), folder / f"part-{number:05d}.parquet")


@pytest.fixture
def harmed(failover_workspace: Path, tmp_path: Path) -> Path:
    """A workspace with a group that is gone, a commit that is there twice, and one without it."""
    space = tmp_path / "harmed"
    shutil.copytree(failover_workspace, space)
    state = space / "state"
    groups = pq.read_table(state / "groups")
    gone = groups["group_id"][3]
    rewritten(state / "groups", groups.filter(pc.not_equal(groups["group_id"], gone)), 3)
    commits = pq.read_table(state / "committed_offsets")
    twice = pa.concat_tables([commits, commits.slice(7, 2)])
    rewritten(state / "committed_offsets", twice, 3)
    epochs = pq.read_table(space / "history" / "group_epochs")
    lower = epochs.set_column(
        epochs.column_names.index("epoch"),
        "epoch",
        pc.if_else(pc.equal(epochs["epoch"], pc.max(epochs["epoch"])), 0, epochs["epoch"]).cast(
            epochs["epoch"].type
        ),
    )
    rewritten(space / "history" / "group_epochs", lower, 2)
    return space


def test_parts_are_judged_as_whole_tables_are(
    harmed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = data_quality_of(Workspace(str(harmed)), {})
    failed = whole.filter(pc.equal(whole["outcome"], "failed"))
    assert {
        *zip(*(failed[name].to_pylist() for name in ("table", "expectation")), strict=True)
    } >= {
        ("committed_offsets", "key unique"),
        ("committed_offsets", "of a group"),
        ("group_epochs", "epoch never back"),
    }
    monkeypatch.setattr(question, "AT_ONCE", 40)
    parts = data_quality_of(Workspace(str(harmed)), {})
    assert parts.drop_columns(["example"]).equals(whole.drop_columns(["example"]))
    assert parts["example"].null_count == whole["example"].null_count


BETWEEN = Expectation(
    "partition_leaders",
    "epochs",
    "expect_column_values_to_be_between",
    {"column": "leader_epoch", "min_value": 0},
    "warning",
    "ours.json",
)


def test_what_needs_all_rows_of_a_table_that_is_too_large_is_not_told(
    harmed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "AT_ONCE", 3)
    monkeypatch.setattr(question, "MOST_ROWS", 10)
    monkeypatch.setattr(judged_table, "MOST_ROWS", 10)
    suites = {"partition_leaders": [BETWEEN]}
    rows = data_quality_of(Workspace(str(harmed)), suites).to_pylist()
    told = {(each["table"], each["expectation"]): each for each in rows}
    assert told["committed_offsets", "key unique"]["outcome"] == "failed"
    assert told["partition_leaders", "key unique"]["outcome"] == "passed"
    epochs = told["partition_leaders", "epochs"]
    assert epochs["rows"] > 10
    assert epochs["outcome"] == "broken"
    assert epochs["reason"] == f"{epochs['rows']} rows are more than are checked (10)"


def test_tables_that_are_of_no_groups_are_judged_in_parts(
    harmed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = harmed / "decoded" / "offset_commit"
    rows = pq.read_table(commits)
    nullable = pa.schema([each.with_nullable(True) for each in rows.schema])
    place = rows.column_names.index("record_type")
    types = pa.array([None, *rows["record_type"].to_pylist()[1:]], nullable.field(place).type)
    one_has_none = rows.cast(nullable).set_column(place, nullable.field(place), types)
    harmed_rows = pa.concat_tables([one_has_none, one_has_none.slice(5, 1)])
    shutil.rmtree(commits)
    commits.mkdir()
    half = len(harmed_rows) // 2
    for number, part in enumerate((harmed_rows.slice(0, half), harmed_rows.slice(half))):
        pq.write_table(part, commits / f"part-{number:05d}.parquet", row_group_size=40)
    leaders = harmed / "state" / "partition_leaders"
    twice = pq.read_table(leaders)
    shutil.rmtree(leaders)
    leaders.mkdir()
    gone = pa.array(["gone", *twice["topic"].to_pylist()[1:]], pa.string())
    one_is_gone = twice.set_column(twice.column_names.index("topic"), "topic", gone)
    pq.write_table(one_is_gone, leaders / "part-00000.parquet")
    whole = data_quality_of(Workspace(str(harmed)), {})
    failed = whole.filter(pc.equal(whole["outcome"], "failed"))
    counts = {
        (each["table"], each["expectation"]): each["unexpected_count"]
        for each in failed.to_pylist()
    }
    assert counts["offset_commit", "record_type not null"] == 1
    assert counts["offset_commit", "key unique"] == 2
    assert counts["partition_leaders", "of a topic"] == 1
    for at_once in (7, 90):
        monkeypatch.setattr(question, "AT_ONCE", at_once)
        # No table is held whole for checks of our own.
        monkeypatch.setattr(question, "MOST_ROWS", at_once)
        monkeypatch.setattr(judged_table, "MOST_ROWS", at_once)
        monkeypatch.setattr(judged_table, "_MANY_ROWS", at_once)
        parts = data_quality_of(Workspace(str(harmed)), {})
        assert parts.drop_columns(["example"]).equals(whole.drop_columns(["example"]))
        assert parts["example"].null_count == whole["example"].null_count
