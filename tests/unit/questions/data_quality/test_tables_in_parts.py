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
    for at_once in (20, 150):
        monkeypatch.setattr(question, "AT_ONCE", at_once)
        parts = data_quality_of(Workspace(str(harmed)), {})
        assert parts.drop_columns(["example"]).equals(whole.drop_columns(["example"]))
        assert parts["example"].null_count == whole["example"].null_count


def test_what_needs_all_rows_of_a_table_that_is_too_large_is_not_told(
    harmed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "AT_ONCE", 3)
    monkeypatch.setattr(question, "MOST_ROWS", 10)
    monkeypatch.setattr(judged_table, "MOST_ROWS", 10)
    rows = data_quality_of(Workspace(str(harmed)), {}).to_pylist()
    told = {(each["table"], each["expectation"]): each for each in rows}
    assert told["committed_offsets", "key unique"]["outcome"] == "failed"
    topics = told["partition_leaders", "key unique"]
    assert topics["rows"] > 10
    assert topics["outcome"] == "broken"
    assert topics["reason"] == f"{topics['rows']} rows are more than are checked (10)"
