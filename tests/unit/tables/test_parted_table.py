"""A table in parts is read as the one table that it is, whatever its parts are."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.contracts import in_key_order
from analytics.errors import WorkspaceError
from analytics.tables import merged_parts, parted_table
from analytics.tables.parted_table import Order, PartedTable, PartedTables, parted

SCHEMA = pa.schema([("group", pa.string()), ("lag", pa.int64()), ("note", pa.string())])
WORST_FIRST = Order(
    ("lag", "group"),
    lambda rows: rows.sort(
        "lag", "group", descending=[True, False], nulls_last=True, maintain_order=True
    ),
)
BY_GROUP = Order(("group",), partial(in_key_order, key=("group",)))


def random_rows(draw: random.Random, groups: list[str]) -> pl.DataFrame:
    """Return rows of groups, some of them with equal or unknown lags."""
    count = len(groups)
    return pl.DataFrame(
        {
            "group": pl.Series(groups, dtype=pl.String),
            "lag": pl.Series(draw.choices([None, *range(-2, 6)], k=count), dtype=pl.Int64),
            "note": pl.Series(draw.choices([None, "a", "b"], k=count), dtype=pl.String),
        }
    )


def as_table(rows: pl.DataFrame) -> pa.Table:
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(SCHEMA)


def in_parts(
    draw: random.Random, order: Order, folder: Path | None
) -> tuple[PartedTable, pa.Table]:
    """Return a table in parts, and all of its rows in order."""
    sizes = draw.choices([0, 1, 7, 40, 90], k=draw.randint(1, 6))
    groups = [f"group-{number:03}" for number in draw.sample(range(900), sum(sizes))]
    # A group has several rows, and all of them are in one part.
    lots = [[groups.pop() for _ in range(size)] for size in sizes]
    frames = [order.sort(random_rows(draw, lot + lot[:9])) for lot in lots]
    tables, whole = list(map(as_table, frames)), as_table(order.sort(pl.concat(frames)))
    if folder is None:
        return PartedTable(SCHEMA, tables, order), whole
    paths = [str(folder / f"{number}.parquet") for number in range(len(tables))]
    for path, rows in zip(paths, tables, strict=True):
        pq.write_table(rows, path, row_group_size=9)
    return PartedTable(SCHEMA, paths, order), whole


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parted_table, "_AT_ONCE", 24)
    monkeypatch.setattr(merged_parts, "_FEWEST", 4)


@pytest.mark.parametrize("order", [WORST_FIRST, BY_GROUP], ids=["worst first", "by key"])
@pytest.mark.parametrize("is_stored", [False, True], ids=["held", "stored"])
def test_pieces_follow_each_other_as_the_whole_table_does(
    tmp_path: Path, order: Order, *, is_stored: bool
) -> None:
    for seed in range(25):
        table, whole = in_parts(random.Random(seed), order, tmp_path if is_stored else None)
        pieces = list(table.pieces())
        assert pa.concat_tables(pieces).equals(whole), seed
        assert table.whole().equals(whole), seed
        assert table.whole(["note"]).equals(whole.select(["note"])), seed
        assert table.num_rows == whole.num_rows
        if len(table.parts) > 1:
            assert max(each.num_rows for each in pieces) <= 24 + 4 * len(table.parts)


@pytest.mark.parametrize("order", [WORST_FIRST, BY_GROUP], ids=["worst first", "by key"])
def test_of_many_parts_few_are_open_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Order
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(merged_parts, "_MOST_TOGETHER", 2)
    opened: list[int] = []
    here = merged_parts._merged

    def merged(
        parts: Sequence[Callable[[int], Iterator[pa.Table]]], order: Order, at_once: int
    ) -> Iterator[pa.Table]:
        opened.append(len(parts))
        return here(parts, order, at_once)

    monkeypatch.setattr(merged_parts, "_merged", merged)
    for seed in range(25):
        table, whole = in_parts(random.Random(seed), order, tmp_path)
        pieces = table.pieces()
        assert pa.concat_tables(pieces).equals(whole), seed
        assert table.where(pl.col("lag") > 99).whole().num_rows == 0
        assert pa.concat_tables(table.where(pl.col("lag") > 99).pieces()).num_rows == 0
        assert not list(temporary.iterdir())
    assert max(opened) == 2
    assert len(opened) > 25 * 3
    cut_short = in_parts(random.Random(1), order, tmp_path)[0].pieces()
    next(cut_short), next(cut_short)
    cut_short.close()
    assert not list(temporary.iterdir())


def test_columns_that_are_not_asked_for_decide_the_order_nevertheless() -> None:
    table, whole = in_parts(random.Random(3), WORST_FIRST, None)
    assert len(table.parts) > 1
    assert pa.concat_tables(table.pieces(["note"])).equals(whole.select(["note"]))


def test_the_first_rows_are_those_of_all_parts() -> None:
    for seed in range(10):
        table, whole = in_parts(random.Random(seed), WORST_FIRST, None)
        for most in (0, 1, 10, 10_000):
            assert table.first(most).equals(whole.slice(0, most)), (seed, most)


@pytest.mark.parametrize("is_stored", [False, True], ids=["held", "stored"])
def test_few_of_many_rows_are_those_of_the_whole_table(tmp_path: Path, *, is_stored: bool) -> None:
    for seed in range(10):
        table, whole = in_parts(random.Random(seed), WORST_FIRST, tmp_path if is_stored else None)
        frame = pl.DataFrame(pl.from_arrow(whole))
        for behind in (pl.col("lag") > 4, pl.col("note") == "b", pl.col("lag") > 100):
            wanted = as_table(frame.filter(behind))
            assert table.where(behind).few().equals(wanted), seed
            assert table.where(behind).few(["note"]).equals(wanted.select(["note"])), seed
            pieces = list(table.where(behind).few_by_part(["group", "lag", "note"]))
            assert WORST_FIRST.sorted(pa.concat_tables(pieces)).equals(wanted), seed
            both = table.where(behind).where(pl.col("lag") < 5)
            assert both.few().equals(as_table(frame.filter(behind & (pl.col("lag") < 5))))


def test_a_file_that_is_damaged_or_lacks_a_column_is_said_of_few_rows_too(tmp_path: Path) -> None:
    damaged, other = tmp_path / "damaged.parquet", tmp_path / "other.parquet"
    damaged.write_bytes(b"PAR1, but no more of it")
    pq.write_table(pa.table({"group": ["a"]}), other)
    for path, why in ((damaged, "cannot be read"), (other, "it lacks a column")):
        table = PartedTable(SCHEMA, [str(path)], BY_GROUP)
        with pytest.raises(WorkspaceError, match=why):
            table.where(pl.col("group") == "a").few()
    gone = PartedTable(SCHEMA, [str(tmp_path / "gone.parquet")], BY_GROUP)
    with pytest.raises(WorkspaceError, match="cannot be read"):
        gone.where(pl.col("lag") > 0).few()


@pytest.mark.parametrize("is_stored", [False, True], ids=["held", "stored"])
def test_a_fold_gets_more_columns_of_the_rows_that_it_keeps(
    tmp_path: Path, *, is_stored: bool
) -> None:
    def first_three(pieces: Iterable[pa.Table]) -> pa.Table:
        rows = pa.concat_tables(pieces)
        looked_at.update(rows.column_names)
        return rows.slice(0, 3)

    for seed in range(10):
        looked_at: set[str] = set()
        table, whole = in_parts(random.Random(seed), WORST_FIRST, tmp_path if is_stored else None)
        kept = table.folded(first_three, ["lag"], ["note", "lag"])
        assert kept.select(SCHEMA.names).equals(whole.slice(0, 3)), seed
        assert "note" not in looked_at
        behind = table.where(pl.col("lag") < 3).folded(first_three, ["lag"], ["note"])
        wanted = pl.DataFrame(pl.from_arrow(whole)).filter(pl.col("lag") < 3)
        assert behind.select(SCHEMA.names).equals(as_table(wanted).slice(0, 3)), seed


def test_a_condition_leaves_out_rows_wherever_they_are_read() -> None:
    table, whole = in_parts(random.Random(5), WORST_FIRST, None)
    wanted = pl.DataFrame(pl.from_arrow(whole)).filter(pl.col("lag") > 0)["group"].to_list()
    assert 0 < len(wanted) < whole.num_rows
    behind = table.where(pl.col("lag") > 0)
    assert behind.num_rows == len(wanted)
    assert behind.whole()["group"].to_pylist() == wanted
    assert pa.concat_tables(behind.pieces(["group"]))["group"].to_pylist() == wanted
    assert behind.first(3)["group"].to_pylist() == wanted[:3]
    assert behind.where(pl.col("note") == "a").num_rows < len(wanted)
    between = behind.where((pl.col("lag") > 0) & (pl.col("lag") < 3))
    assert 0 < between.num_rows < len(wanted)


def test_a_table_without_parts_has_its_columns() -> None:
    table = PartedTable(SCHEMA, [], WORST_FIRST)
    for rows in (table.whole(), table.first(3), *table.pieces()):
        assert rows.equals(SCHEMA.empty_table())
    assert table.num_rows == 0


def test_a_table_that_is_here_is_read_as_it_is() -> None:
    rows = pa.table({"a": [3, 1, 2]})
    tables = PartedTables({"a": PartedTable.held(rows)})
    assert tables["a"] is rows
    assert dict(tables) == {"a": rows}
    assert pa.concat_tables(parted(tables, "a").pieces()).equals(rows)
    assert pa.concat_tables(parted({"a": rows}, "a").pieces()).equals(rows)
