"""Rows of the tables about expiry as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import polars as pl
import pyarrow as pa

from reports.layout.cells import durations
from reports.layout.section import Rows, as_main, heads_of, table_section, without
from reports.row_formats import Section
from schemas.expiration_rules import OFFSET_STATUSES, tools_by_pattern

WHAT_IF_VERDICTS = (
    *("would_lose_now", "would_have_lost", "cannot_tell", "not_lost_in_period", "safe"),
)
REMOVAL_VERDICTS = ("early", "late", "cannot_tell", "on_time", "not_applicable")
PROBLEMS = frozenset(
    {
        *("overdue", "due", "blocked", "cannot_tell"),
        *("would_lose_now", "would_have_lost", "early", "late"),
    }
)
_OWNER: Final = {
    "lag": pl.Int64(),
    "consumer_id": pl.String(),
    "host": pl.String(),
    "client_id": pl.String(),
}
_OFFSETS: Final = "offset_expiration"
NAMED_BY: Final = "named_by"
RANK: Final = "rank"
_AT_ONCE: Final = 1_000_000
_STATUS: Final = pl.format("{} {}", "offsets", "status")
"""In words how many offsets have a status."""


class Worst(NamedTuple):
    """The worst of rows that are too many for people.

    Attributes:
        rows: In the order of their table.
        more: How many there are besides.
        are_named: Whether a tool gave any of all groups its name.
    """

    rows: pa.Table
    more: int
    are_named: bool


def group_section(fates: pa.Table | Worst, *, for_people: bool) -> Section:
    """Return a row a group: how many offsets, by which rules, when the next one goes.

    Args:
        fates: `group_id`, `rule`, `status`, how many `offsets` fare so, the first `expires_at`;
            of all groups, or of the worst.
        for_people: The worst first.
    """
    few = fates if isinstance(fates, Worst) else None
    ranked = with_offset_rank(_frame(few.rows if few else fates))
    groups = ranked_groups(ranked)
    shown = _worst_first(groups) if for_people else groups
    summed = _summed(ranked.join(shown, on="group_id", how="semi"))
    rows = shown.join(summed, on="group_id", how="left", maintain_order="left")
    section = table_section(
        _table(rows.select(*heads_of(_OFFSETS, "groups"), "is_problem")),
        _OFFSETS,
        "groups",
        view="groups",
        title="Groups",
        problem="is_problem",
    )
    section = replace(section, more=few.more if few else 0)
    return _without_tools(section, groups, few) if for_people else section


def with_offset_rank(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `RANK`: how bad the status of an offset is; 0 is the worst."""
    return rows.with_columns(_rank("status", OFFSET_STATUSES).alias(RANK))


def ranked_groups(ranked: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, `RANK` and `NAMED_BY` of groups, in order.

    Args:
        ranked: Their fates, of `with_offset_rank`.
    """
    groups = ranked.group_by("group_id").agg(pl.col(RANK).min())
    return groups.with_columns(_named_by()).sort("group_id")


def ranked_what_if(what_if: pl.DataFrame) -> pl.DataFrame:
    """Add `RANK` and `NAMED_BY` to rows of `retention_what_if`."""
    return what_if.with_columns(_named_by(), _rank("verdict", WHAT_IF_VERDICTS).alias(RANK))


def worst_order() -> list[pl.Expr]:
    """Return by what the worst come first, of what is ranked."""
    # Nobody comes back for what a tool committed that named its group by itself.
    return [pl.col(RANK), pl.col(NAMED_BY).is_not_null()]


def _summed(fates: pl.DataFrame) -> pl.DataFrame:
    """Return a row a group: of all rules and statuses of its offsets."""
    fates = fates.with_columns(_is_problem("status"))
    counted = (
        fates.group_by("group_id", "status")
        .agg(pl.col("offsets").sum())
        .sort("status")
        .group_by("group_id")
        .agg(_STATUS.str.join(", ").alias("statuses"))
    )
    return (
        fates.group_by("group_id")
        .agg(
            pl.col("offsets").sum(),
            pl.col("rule").unique().sort().str.join(", ").alias("rules"),
            pl.col("expires_at").min().alias("next"),
            pl.col("is_problem").any(),
        )
        .join(counted, on="group_id")
    )


def offset_section(
    owned: pa.Table,
    *,
    for_people: bool,
    has_notes: bool = False,
    more: int = 0,
) -> Section:
    """Return a row an offset, with the columns of kafka-consumer-groups.

    Args:
        owned: The table `offset_expiration`, or its `worst_offsets`, of `with_owners`.
        for_people: Only the columns with a head.
        has_notes: Whether any offset has a note, here or not.
        more: How many rows are not here.
    """
    rows = _frame(owned).with_columns(
        _is_problem("status"), _rank("status", OFFSET_STATUSES).alias(RANK)
    )
    if for_people:
        untold = pl.when(pl.col("status") == "cannot_tell").then(pl.lit("cannot tell: "))
        note = pl.concat_str(untold.fill_null(""), "note")
        rows = rows.with_columns(note.alias("note")).sort(RANK, maintain_order=True)
    heads = heads_of(_OFFSETS)
    names = list(dict.fromkeys([*owned.column_names, *heads]))
    section = table_section(
        _table(rows.select(*names, "is_problem")),
        _OFFSETS,
        "offsets",
        title="Offsets",
        problem="is_problem",
        also=() if for_people else None,
    )
    section = replace(as_main(section), more=more)
    return without(section, ["note"]) if for_people and not has_notes else section


def what_if_section(what_if: pa.Table | Worst) -> Section:
    """Return a row a retention and group, those first that lose offsets.

    Args:
        what_if: The table `retention_what_if`, or its worst rows.
    """
    few = what_if if isinstance(what_if, Worst) else None
    period = pl.col("observed_to").dt.epoch("ms") - pl.col("observed_from").dt.epoch("ms")
    verdict = pl.col("verdict")
    observed = pl.format("not lost in the {} observed", pl.col("observed").fill_null("None"))
    every = ranked_what_if(_frame(few.rows if few else what_if))
    rows = (
        _worst_first(every)
        .with_columns(
            durations(pl.col("longest_idle_ms")).alias("longest_idle"),
            durations(period).alias("observed"),
            _is_problem("verdict"),
        )
        .with_columns(
            pl.when(verdict == "not_lost_in_period")
            .then(observed)
            .otherwise(verdict.str.replace_all("_", " ", literal=True))
            .alias("verdict")
        )
    )
    section = table_section(
        _table(rows.drop(RANK)),
        "retention_what_if",
        "what_if",
        title="What if",
        problem="is_problem",
        also=(),
    )
    return _without_tools(replace(section, more=few.more if few else 0), every, few)


def removal_section(removals: Rows) -> Section:
    """Return a row a group, cause and verdict: how many offsets went, and when."""
    key = ["group_id", "cause", "confidence", "verdict", "reason"]
    summed = {
        "count": pl.col("count").sum(),
        "first": pl.col("first").min(),
        "last": pl.col("last").max(),
    }
    held: list[pl.DataFrame] = []
    for piece in removals.pieces([*key, "removed_at"]):
        removed_at = pl.col("removed_at")
        rows = _frame(piece).select(
            *key[:-1],
            pl.col("reason").fill_null(""),
            pl.lit(1, pl.UInt32).alias("count"),
            removed_at.alias("first"),
            removed_at.alias("last"),
        )
        held = [pl.concat([*held, rows]).group_by(key).agg(**summed)]
    rank = _rank("verdict", REMOVAL_VERDICTS).alias(RANK)
    ordered = held[0].with_columns(_is_problem("verdict"), rank).sort(RANK, *key)
    return table_section(
        _table(ordered.select(*heads_of("offset_removals"), "is_problem")),
        "offset_removals",
        "removals",
        title="Removed",
        problem="is_problem",
    )


def with_owners(expiration: pa.Table, described: pa.Table) -> pa.Table:
    """Add who owns the partitions of offsets, and their lag; of several in one the last.

    Args:
        expiration: The table `offset_expiration`.
        described: Rows of `describe`: `group`, `topic`, `partition`, `lag`, `consumer_id`, `host`,
            `client_id`; nobody owns any where it has none.
    """
    rows, key = _frame(expiration), ["group_id", "topic", "partition"]
    if described.num_rows:
        owners = _frame(described.select(["group", *key[1:], *_OWNER])).rename({"group": key[0]})
        owners = owners.unique(key, keep="last", maintain_order=True)
        rows = rows.join(owners, on=key, how="left", maintain_order="left")
    else:
        rows = rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in _OWNER.items())
    return _table(rows)


def _without_tools(section: Section, rows: pl.DataFrame, few: Worst | None) -> Section:
    """Leave out which tool named a group where none of all has such a name."""
    is_any = few.are_named if few else rows[NAMED_BY].null_count() < rows.height
    return section if is_any else without(section, [NAMED_BY])


def _named_by() -> pl.Expr:
    """Return which tool gave a group its name; null where none is known to."""
    named = [
        pl.when(pl.col("group_id").str.contains(f"^(?:{pattern})$")).then(pl.lit(tool))
        for pattern, tool in tools_by_pattern()
    ]
    return pl.coalesce(*named, pl.lit(None, pl.String)).alias(NAMED_BY)


def _is_problem(name: str) -> pl.Expr:
    return pl.col(name).is_in(sorted(PROBLEMS)).alias("is_problem")


def _rank(name: str, order: Sequence[str]) -> pl.Expr:
    """Return the place of a word among those that are the worst first; others come last."""
    ranks = {word: rank for rank, word in enumerate(order)}
    return pl.col(name).replace_strict(ranks, default=len(ranks), return_dtype=pl.Int8)


def _worst_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows, the worst first, and those alike in the order they have."""
    return rows.sort(worst_order(), maintain_order=True)


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows))


def _table(rows: pl.DataFrame) -> pa.Table:
    """Return rows for a section: their texts as Arrow's plain strings, lot by lot."""
    lots = [each.to_arrow(compat_level=pl.CompatLevel.oldest()) for each in _lots(rows)]
    plain = [
        pa.field(each.name, pa.string() if pa.types.is_large_string(each.type) else each.type)
        for each in lots[0].schema
    ]
    return pa.concat_tables([each.cast(pa.schema(plain)) for each in lots])


def _lots(rows: pl.DataFrame) -> list[pl.DataFrame]:
    return list(rows.iter_slices(_AT_ONCE)) or [rows]
