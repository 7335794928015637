"""Rows of groups are laid out in parts, and every group is whole in its part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import polars as pl
import pytest

from analytics.errors import WorkspaceError
from analytics.replayed import whole_groups as module
from analytics.replayed.group_rows import GroupRows
from analytics.replayed.whole_groups import group_parts, parts_for

GROUPS = [f"group-{number}" for number in range(50)]
COMMITS = pl.DataFrame({"group": GROUPS * 7, "offset": range(350)})
MEMBERS = pl.DataFrame({"key": [{"group_id": each} for each in GROUPS], "place": range(50)})
NOTHING = pl.DataFrame(schema={"group": pl.String, "epoch": pl.Int32})


def pieces(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield rows.clear()
    yield from rows.iter_slices(40)


def tables() -> dict[str, GroupRows]:
    return {
        "commits": GroupRows(pieces(COMMITS), pl.col("group")),
        "members": GroupRows(pieces(MEMBERS), pl.col("key").struct.field("group_id")),
        "nothing": GroupRows([NOTHING], pl.col("group")),
    }


@pytest.mark.parametrize("at_once", [0, 1 << 20])
@pytest.mark.parametrize("parts", [1, 7])
def test_every_row_is_in_one_part_with_all_of_its_group(
    monkeypatch: pytest.MonkeyPatch, parts: int, at_once: int
) -> None:
    monkeypatch.setattr(module, "_WRITTEN_BYTES", at_once)
    with group_parts(tables(), parts) as given:
        found = [dict(give.read()) for give in given]
    assert len(found) == parts
    assert pl.concat(each["commits"] for each in found).sort("offset").equals(COMMITS)
    assert pl.concat(each["members"] for each in found).sort("place").equals(MEMBERS)
    seen = Counter(group for each in found for group in each["commits"]["group"].unique().to_list())
    assert seen == dict.fromkeys(GROUPS, 1)
    for each in found:
        assert each["nothing"].equals(NOTHING)
        members = each["members"].select(pl.col("key").struct.field("group_id")).to_series()
        assert {*members.to_list()} == {*each["commits"]["group"].to_list()}


def test_a_part_has_about_as_many_rows_as_are_held_together() -> None:
    assert [parts_for(rows, 250) for rows in (0, 1, 250, 251, 1_000)] == [1, 1, 1, 2, 4]
    assert parts_for(10**9, 250) == 400, "so many files are open at the same time"


def test_rows_that_are_gone_are_an_error_and_no_empty_table() -> None:
    with group_parts(tables(), 7) as given:
        pass
    with pytest.raises(WorkspaceError, match="is gone"):
        given[0].read()["commits"]
