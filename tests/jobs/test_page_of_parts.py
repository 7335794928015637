"""The page of an audit is the same, however many files its tables were answered into."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.questions.table_orders import order_of
from jobs.audit.page import page_of_audit
from reports.page.forms import html_of

IN_PARTS = (
    *("lag", "audited_groups", "offset_expiration", "offset_verdicts", "topic_usage"),
    *("rebalances", "group_churn", "assignment_balance", "committers", "status_history"),
    "retention_what_if",
)


def in_three(space: Path, name: str) -> None:
    """Lay a table out in three files, each of whole groups and in order."""
    folder = space / "evaluations" / name
    rows = pq.read_table(folder)
    groups = pc.unique(rows["group_id"])
    shutil.rmtree(folder)
    folder.mkdir()
    for number in range(3):
        mine = pc.is_in(
            rows["group_id"], groups.take(pa.array(range(number, len(groups), 3), pa.int64()))
        )
        pq.write_table(rows.filter(mine), folder / f"part-{number:05d}.parquet")


def without_listed_files(space: Path) -> None:
    """Let the manifest be of no files: those of the tables are others now."""
    path = space / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest.pop("files")
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_files_that_are_in_order_each_give_the_page_of_one(
    failover_audited: Path, tmp_path: Path
) -> None:
    space = tmp_path / "in-parts"
    shutil.copytree(failover_audited, space)
    for name in IN_PARTS:
        before = pq.read_table(space / "evaluations" / name)
        in_three(space, name)
        after = pq.read_table(space / "evaluations" / name)
        assert not after.equals(before), name
        assert order_of(name).sorted(after).equals(before), name
    without_listed_files(space)
    assert html_of(page_of_audit(str(space))) == html_of(page_of_audit(str(failover_audited)))
