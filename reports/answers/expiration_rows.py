"""Rows of the tables about expiry as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl
import pyarrow as pa

from reports.durations import durations
from reports.row_formats import Section
from schemas.expiration_rules import OFFSET_STATUSES
from schemas.generated_names import tools_by_pattern

GROUP_HEADS = {
    "group_id": "GROUP",
    "offsets": "OFFSETS",
    "rules": "RULE",
    "next": "NEXT-EXPIRES-AT",
    "statuses": "STATUS",
    "named_by": "NAMED-BY",
}
OFFSET_HEADS = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "committed_offset": "CURRENT-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "consumer_id": "CONSUMER-ID",
    "host": "HOST",
    "client_id": "CLIENT-ID",
    "rule": "RULE",
    "base_timestamp": "COUNTS-FROM",
    "expires_at": "EXPIRES-AT",
    "next_cleanup_at": "CLEANUP-BY",
    "status": "STATUS",
    "blocked_by": "BLOCKED-BY",
    "note": "NOTE",
}
SPARE = (
    *("client_id", "host", "base_timestamp", "log_end_offset", "consumer_id", "next_cleanup_at"),
    *("blocked_by", "lag"),
)
"""What text leaves out first where there is no room."""
WHAT_IF_HEADS = {
    "retention_minutes": "RETENTION-MINUTES",
    "group_id": "GROUP",
    "offsets": "OFFSETS",
    "lost_now": "LOST-NOW",
    "lost_once": "LOST-ONCE",
    "first_lost_at": "FIRST-LOST-AT",
    "next_expires_at": "NEXT-EXPIRES-AT",
    "longest_idle": "LONGEST-IDLE",
    "observed": "OBSERVED",
    "verdict": "VERDICT",
    "named_by": "NAMED-BY",
    "reason": "REASON",
}
REMOVAL_HEADS = {
    "group_id": "GROUP",
    "count": "OFFSETS",
    "cause": "CAUSE",
    "confidence": "CONFIDENCE",
    "verdict": "VERDICT",
    "first": "FIRST-REMOVED-AT",
    "last": "LAST-REMOVED-AT",
    "reason": "REASON",
}
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
_OWNER: Final = ("lag", "consumer_id", "host", "client_id")
_NAMED_BY: Final = "named_by"
_RANK, _NTH = "rank", "nth"
_AT_ONCE: Final = 1_000_000
_STATUS: Final = pl.format("{} {}", "offsets", "status")
"""In words how many offsets have a status."""


def group_section(fates: pa.Table, *, for_people: bool, most: int | None = None) -> Section:
    """Return a row a group: how many offsets, by which rules, when the next one goes.

    Args:
        fates: `group_id`, `rule`, `status`, how many `offsets` fare so, the first `expires_at`.
        for_people: The worst first.
        most: So many groups, the worst; None is all.
    """
    ranked = _frame(fates).with_columns(_rank("status", OFFSET_STATUSES).alias(_RANK))
    groups = ranked.group_by("group_id").agg(pl.col(_RANK).min())
    groups = groups.with_columns(_named_by()).sort("group_id")
    heads = dict(GROUP_HEADS)
    if for_people:
        _without_tools(heads, groups)
        shown = _worst_first(groups, most)
    else:
        shown = groups
    summed = _summed(ranked.join(shown, on="group_id", how="semi"))
    rows = shown.join(summed, on="group_id", how="left", maintain_order="left")
    return Section(
        _table(rows.select(*GROUP_HEADS, "is_problem")),
        heads,
        name="groups",
        key="groups",
        title="Groups",
        problem="is_problem",
        more=groups.height - shown.height,
    )


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


def worst_offsets(expiration: pa.Table, most: int) -> pa.Table:
    """Return the first rows of the table `offset_expiration` in the order that people get."""
    ranks = _frame(expiration.select(["status"])).with_row_index("nth")
    worst = ranks.select("nth", _rank("status", OFFSET_STATUSES).alias(_RANK)).bottom_k(
        most, by=[_RANK, "nth"]
    )
    return expiration.take(worst.sort(_RANK, "nth")["nth"].to_arrow())


def offset_section(
    expiration: pa.Table,
    described: pa.Table,
    *,
    for_people: bool,
    has_notes: bool = False,
    more: int = 0,
) -> Section:
    """Return a row an offset, with the columns of kafka-consumer-groups.

    Args:
        expiration: The table `offset_expiration`, or its `worst_offsets`.
        described: Rows of `describe`: `group`, `topic`, `partition`, `lag`, `consumer_id`, `host`,
            `client_id`.
        for_people: Only the columns with a head.
        has_notes: Whether any offset has a note, here or not.
        more: How many rows are not here.
    """
    rows = _with_owners(_frame(expiration), described).with_columns(
        _is_problem("status"), _rank("status", OFFSET_STATUSES).alias(_RANK)
    )
    heads = dict(OFFSET_HEADS)
    if for_people:
        rows = rows.sort(_RANK, maintain_order=True)
        if not has_notes:
            del heads["note"]
    names = list(dict.fromkeys([*expiration.column_names, *OFFSET_HEADS]))
    also = [] if for_people else [name for name in names if name not in OFFSET_HEADS]
    return Section(
        _table(rows.select(*names, "is_problem")),
        heads,
        also,
        name="offsets",
        title="Offsets",
        problem="is_problem",
        spare=SPARE,
        more=more,
    )


def what_if_section(what_if: pa.Table, most: int | None = None) -> Section:
    """Return a row a retention and group, those first that lose offsets.

    Args:
        what_if: The table `retention_what_if`.
        most: So many rows, the first; None is all.
    """
    period = pl.col("observed_to").dt.epoch("ms") - pl.col("observed_from").dt.epoch("ms")
    verdict = pl.col("verdict")
    observed = pl.format("not lost in the {} observed", pl.col("observed").fill_null("None"))
    every = _frame(what_if).with_columns(
        _named_by(), _rank("verdict", WHAT_IF_VERDICTS).alias(_RANK)
    )
    rows = (
        _worst_first(every, most)
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
    heads = dict(WHAT_IF_HEADS)
    _without_tools(heads, every)
    return Section(
        _table(rows.drop(_RANK)),
        heads,
        name="what_if",
        key="what_if",
        title="What if",
        problem="is_problem",
        spare=("first_lost_at", "longest_idle", "observed"),
        more=every.height - rows.height,
    )


def removal_section(removals: pa.Table) -> Section:
    """Return a row a group, cause and verdict: how many offsets went, and when."""
    key = ["group_id", "cause", "confidence", "verdict", "reason"]
    rows = (
        _frame(removals.select([*key, "removed_at"]))
        .with_columns(pl.col("reason").fill_null(""))
        .group_by(key)
        .agg(
            pl.len().alias("count"),
            pl.col("removed_at").min().alias("first"),
            pl.col("removed_at").max().alias("last"),
        )
        .with_columns(_is_problem("verdict"), _rank("verdict", REMOVAL_VERDICTS).alias(_RANK))
        .sort(_RANK, *key)
    )
    return Section(
        _table(rows.select(*REMOVAL_HEADS, "is_problem")),
        REMOVAL_HEADS,
        name="removals",
        key="removals",
        title="Removed",
        problem="is_problem",
    )


def _with_owners(rows: pl.DataFrame, described: pa.Table) -> pl.DataFrame:
    """Add what `describe` says of the owners; of several in one partition the last."""
    key = ["group_id", "topic", "partition"]
    if not described.num_rows:
        return rows.with_columns(pl.lit(None, pl.String).alias(name) for name in _OWNER)
    owners = _frame(described.select(["group", *key[1:], *_OWNER])).rename({"group": "group_id"})
    owners = owners.unique(key, keep="last")
    return rows.join(owners, on=key, how="left", maintain_order="left")


def _without_tools(heads: dict[str, str], rows: pl.DataFrame) -> None:
    """Leave out which tool named a group where none of them has such a name."""
    if rows[_NAMED_BY].null_count() == rows.height:
        del heads[_NAMED_BY]


def _named_by() -> pl.Expr:
    """Return which tool gave a group its name; null where none is known to."""
    named = [
        pl.when(pl.col("group_id").str.contains(f"^(?:{pattern})$")).then(pl.lit(tool))
        for pattern, tool in tools_by_pattern()
    ]
    return pl.coalesce(*named, pl.lit(None, pl.String)).alias(_NAMED_BY)


def _is_problem(name: str) -> pl.Expr:
    return pl.col(name).is_in(sorted(PROBLEMS)).alias("is_problem")


def _rank(name: str, order: Sequence[str]) -> pl.Expr:
    """Return the place of a word among those that are the worst first; others come last."""
    ranks = {word: rank for rank, word in enumerate(order)}
    return pl.col(name).replace_strict(ranks, default=len(ranks), return_dtype=pl.Int8)


def _worst_first(rows: pl.DataFrame, most: int | None) -> pl.DataFrame:
    """Return rows, or so many of them, the worst first, and those alike in the order they have."""
    # Nobody comes back for what a tool committed that named its group by itself.
    order = [pl.col(_RANK), pl.col(_NAMED_BY).is_not_null(), pl.col(_NTH)]
    rows = rows.with_row_index(_NTH)
    worst = rows if most is None else rows.bottom_k(most, by=order)
    return worst.sort(order).drop(_NTH)


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
