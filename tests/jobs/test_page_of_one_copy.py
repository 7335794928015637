"""The page of one broker's disk and the controller's: no row stands there that may be otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from jobs.audit.page import page_of_audit
from jobs.cli.main import run
from reports.page.model import Grid, Page
from reports.page.rows import HEAD
from tests.support.decoded_here import decoded_here

pytestmark = pytest.mark.long

TABLES = {
    "groups-table": "audited_groups",
    "lag-table": "lag",
    "share-table": "share_backlog",
    "rebalances-table": "group_churn",
}
"""What tables of the page are of; in stories those of events are of `group_events`."""
TOOL = "console-consumer-"


@pytest.fixture(scope="module")
def audited(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("one-copy")
    decoded_here(
        [str(failover_dump / each) for each in ("broker-1", "controller-100")], made / "in"
    )
    out = made / "out"
    assert run(["audit", str(made / "in"), "--out", str(out), "--fail-on", "never"]) in (0, 3)
    return out


def grids_of(page: Page) -> Iterator[tuple[str | None, Grid]]:
    """Yield the tables of a page, and whose story each is of."""
    yield None, page.groups
    for subject in page.subjects:
        yield from ((None, each) for each in subject.grids)
    for story in page.stories:
        whose = story.group.whole or story.group.text
        yield from ((whose, each) for each in story.grids)


def table_of(grid: Grid) -> str | None:
    return "group_events" if grid.anchor.endswith("-events") else TABLES.get(grid.anchor)


def marks_of(grid: Grid) -> int:
    if HEAD not in grid.heads:
        return 0
    at = grid.heads.index(HEAD)
    return sum(row[at].text.startswith("cannot tell") for row in grid.rows)


def test_every_row_that_is_not_whole_is_marked(audited: Path) -> None:
    stored = StoredTables(Workspace(str(audited)))
    seen: dict[str, int] = {}
    for whose, grid in grids_of(page_of_audit(str(audited))):
        name = table_of(grid)
        if name is None or grid.more:
            continue
        rows = stored.read(name)
        mine = rows if whose is None else rows.filter(pc.equal(rows["group_id"], whose))
        # Groups that a tool named alike are one line, which is marked where any of them is.
        is_alike = pc.starts_with(mine["group_id"], TOOL)
        alike, apart = mine.filter(is_alike), mine.filter(pc.invert(is_alike))
        if grid.anchor != "groups-table" or alike.num_rows < 2:
            alike, apart = mine.slice(0, 0), mine
        assert apart.num_rows + bool(alike.num_rows) == len(grid.rows)
        lacking = _lacking(apart) + bool(_lacking(alike))
        assert marks_of(grid) == lacking, grid.anchor
        seen[name] = seen.get(name, 0) + lacking
    assert {each for each in seen if seen[each]} >= {"audited_groups", "group_events"}


def test_what_is_said_below_charts_tells_of_it(audited: Path) -> None:
    stored = StoredTables(Workspace(str(audited)))
    page = page_of_audit(str(audited))
    told = 0
    for story in page.stories:
        whose = story.group.whole or story.group.text
        for figure in story.figures:
            name = "offset_history" if figure.anchor.endswith("-offsets") else "assignment_history"
            rows = stored.read(name, where=pc.field("group_id") == whose)
            if _lacking(rows) == rows.num_rows:
                assert "Cannot tell whether" in figure.says, figure.anchor
                told += 1
    assert told


def test_the_whole_dump_has_no_mark(failover_audited: Path) -> None:
    page = page_of_audit(str(failover_audited))
    stored = StoredTables(Workspace(str(failover_audited)))
    for whose, grid in grids_of(page):
        name = table_of(grid)
        if name is not None and not _lacking(stored.read(name)):
            assert marks_of(grid) == 0, (whose, grid.anchor)


def _lacking(rows: pa.Table) -> int:
    return int(pc.sum(pc.invert(rows["complete"])).as_py() or 0)
