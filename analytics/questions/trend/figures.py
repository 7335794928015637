"""What each run comes to: groups, lag, bytes, expiries, rebalances and findings, as sums.

Tables are read some rows at a time, and nothing is kept of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import polars as pl

from analytics.contracts import polars_rows
from analytics.gaps.gap import Gap
from analytics.questions.sums import AT_LEAST, AT_LEAST_ABOUT
from analytics.questions.trend.runs import TOO_CLOSE, AuditedRun, Pair, without_table

EXACT, ESTIMATED = "exact", "estimated"
INTERPOLATED: Final = "interpolated"
_SEVERITIES: Final = ("critical", "warning", "info")


def frames(run: AuditedRun, name: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield columns of a table of a run, some rows at a time; at least one frame."""
    return map(polars_rows, run.tables.pieces(name, columns))


def summed(
    run: AuditedRun,
    name: str,
    columns: Sequence[str],
    fold: Callable[[pl.DataFrame], pl.DataFrame],
) -> pl.DataFrame:
    """Return what a fold leaves of the rows of a table, put together by the same fold."""
    held: pl.DataFrame | None = None
    for rows in frames(run, name, columns):
        made = fold(rows)
        held = made if held is None else pl.concat([held, made])
    assert held is not None
    return held


@dataclass
class _Doubts:
    """What cannot be told of a run: gaps, and reasons for its row."""

    run: AuditedRun
    gaps: list[Gap] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def has(self, subject: str, *tables: str) -> bool:
        """Return whether a run has all tables of a subject; the first that lacks is a gap."""
        absent = next((each for each in tables if not self.run.tables.has(each)), None)
        if absent is None:
            return True
        self.gaps.append(without_table(self.run, subject, absent))
        self.reasons.append(f"{subject}: there is no table {absent}")
        return False


@dataclass(frozen=True)
class RunFigures:
    """What a run comes to.

    Attributes:
        row: A row of `trend_runs`.
        of_topics: Rows of `trend_bytes`.
        of_groups: Rows of `trend_groups`.
        gaps: What cannot be told.
    """

    row: Mapping[str, Any]
    of_topics: Sequence[Mapping[str, Any]]
    of_groups: Sequence[Mapping[str, Any]]
    gaps: Sequence[Gap]


def figures_of(pair: Pair, lag_before: Mapping[str, Any] | None) -> RunFigures:
    """Return what a run comes to, and how fast it changed since the run before.

    Args:
        pair: Both runs.
        lag_before: The row of the run before; None of the first one.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    run, doubts = pair.run, _Doubts(pair.run)
    place = {"cluster": pair.cluster, "as_of": run.as_of}
    groups = _groups(run, doubts)
    lag = _lag(run, doubts)
    topics = _bytes_of_topics(pair, doubts)
    since = None if pair.before is None else pair.before.as_of
    row = {
        **place,
        "run": run.name,
        "previous_as_of": since,
        **_group_figures(run, groups),
        **lag,
        **_lag_per_day(pair, lag, lag_before, doubts),
        **_bytes_together(topics, doubts),
        **_expiries(run, since, doubts),
        **_rebalances(run, since, doubts),
        **_findings(run, doubts),
    }
    if pair.difference is not None:
        doubts.reasons.append(f"what changed: {pair.difference.words}")
    row["reason"] = "; ".join(dict.fromkeys(doubts.reasons)) or None
    return RunFigures(
        row,
        [{**place, **each} for each in topics],
        [] if groups is None else [{**place, **each} for each in groups.to_dicts()],
        doubts.gaps,
    )


def _groups(run: AuditedRun, doubts: _Doubts) -> pl.DataFrame | None:
    """Return `group_type`, `state` and how many `groups`; None where that is not known."""
    if not doubts.has("groups by state", "groups"):
        return None
    keys = ["group_type", "state"]
    counted = summed(run, "groups", keys, lambda rows: rows.group_by(keys).len("groups"))
    found = counted.group_by(keys).agg(pl.col("groups").sum().cast(pl.Int64))
    return found.sort(keys)


def _group_figures(run: AuditedRun, groups: pl.DataFrame | None) -> dict[str, Any]:
    if groups is None:
        return {"groups": None, "groups_bound": None}
    number = int(groups["groups"].sum())
    return {"groups": number, "groups_bound": ESTIMATED if run.lacks else EXACT}


def _lag(run: AuditedRun, doubts: _Doubts) -> dict[str, Any]:
    nothing = {"lag": None, "lag_bound": None, "lag_unknown_partitions": None}
    if not doubts.has("lag", "audited_groups"):
        return nothing
    columns = ["lag", "lag_not_told", "complete"]
    unknown = pl.col("lag_not_told").fill_null(0)
    sums = summed(
        run,
        "audited_groups",
        columns,
        lambda rows: rows.select(
            pl.col("lag").sum().alias("lag"),
            pl.col("lag").count().alias("known"),
            unknown.sum().alias("unknown"),
            # Of these nothing else is unknown than whether a commit is missing.
            ((pl.col("complete") == False) & (unknown == 0))  # noqa: E712 - null is neither
            .sum()
            .alias("uncertain"),
        ),
    ).sum()
    unasked = not run.tables.has("lag") and not run.tables.has("share_backlog")
    if unasked:
        doubts.has("lag", "lag")
        return nothing
    row = sums.row(0, named=True)
    if not row["known"]:
        if row["unknown"]:
            doubts.reasons.append("lag: that of no partition is known")
            return {**nothing, "lag_unknown_partitions": row["unknown"]}
        return {"lag": 0, "lag_bound": EXACT, "lag_unknown_partitions": 0}
    bound = EXACT
    if row["unknown"]:
        bound = AT_LEAST
        doubts.reasons.append(f"lag: that of {of_partitions(row['unknown'])} is not known")
    if row["uncertain"] or _has_interpolated_ends(run):
        bound = AT_LEAST_ABOUT if row["unknown"] else ESTIMATED
    return {"lag": row["lag"], "lag_bound": bound, "lag_unknown_partitions": row["unknown"]}


def of_partitions(number: int) -> str:
    """Return how many partitions, in words."""
    return f"{number:,} partition" if number == 1 else f"{number:,} partitions"


def _has_interpolated_ends(run: AuditedRun) -> bool:
    if not run.tables.has("lag"):
        return False
    return any(
        bool((rows["log_end_bound"] == INTERPOLATED).any())
        for rows in frames(run, "lag", ["log_end_bound"])
    )


def _lag_per_day(
    pair: Pair, lag: Mapping[str, Any], before: Mapping[str, Any] | None, doubts: _Doubts
) -> dict[str, Any]:
    nothing = {"lag_per_day": None, "lag_per_day_bound": None}
    if pair.comparable is None or before is None or lag["lag"] is None or before["lag"] is None:
        return nothing
    if lag["lag_unknown_partitions"] or before["lag_unknown_partitions"]:
        doubts.reasons.append("how fast the lag grows: that of some partitions is not known")
        return nothing
    if pair.days is None:
        doubts.reasons.append(f"how fast the lag grows: {TOO_CLOSE}")
        return nothing
    is_exact = lag["lag_bound"] == before["lag_bound"] == EXACT
    return {
        "lag_per_day": (lag["lag"] - before["lag"]) / pair.days,
        "lag_per_day_bound": EXACT if is_exact else ESTIMATED,
    }


# Bytes of the internal topics: of the copy of each partition that leads, now and before.

_PLACE: Final = ("topic", "partition", "copy")
SNAPSHOT: Final = "snapshot"
"""What the copy is called that was fetched from the leaders of partitions."""
KEEPS_CLEANED: Final = (
    "a snapshot that goes on from an earlier one keeps what the cleaner has removed since"
)
MAY_KEEP_CLEANED: Final = (
    "nothing tells whether a snapshot goes on from an earlier one, and keeps what the cleaner has "
    "removed since"
)


def usage_by_copy(run: AuditedRun) -> pl.DataFrame:
    """Return `file_bytes` and `is_leading` of each copy of each internal partition.

    A copy that was fetched from the leaders is called `SNAPSHOT`, whatever its folder is called.
    """
    columns = [*_PLACE, "is_leading", "file_bytes"]
    rows = pl.concat(frames(run, "partition_usage", columns))
    is_fetched = pl.col("copy").is_in(sorted(run.snapshot_copies))
    copy = pl.when(is_fetched).then(pl.lit(SNAPSHOT)).otherwise("copy")
    # Of several that were fetched of a partition one has the line that survived.
    return rows.filter(~is_fetched.fill_null(value=False) | pl.col("is_leading")).with_columns(
        is_fetched.fill_null(value=False).alias("is_fetched"), copy.alias("copy")
    )


def copies_as_named_by(run: AuditedRun, before: AuditedRun) -> dict[str, str]:
    """Return what copies of the run before are called in a run, where that is not the same.

    A copy is named after its folder, and a broker by its node id: two copies of one name are of
    two brokers where their ids say so, and two of one id are of one broker.
    """
    by_node = {node: copy for copy, node in run.nodes.items()}
    is_plain = len(by_node) == len(run.nodes)
    is_plain &= len({*before.nodes.values()}) == len(before.nodes)
    if not is_plain:
        return {}
    names = {
        copy: by_node.get(node, copy if copy not in run.nodes else f"{copy} (broker {node})")
        for copy, node in before.nodes.items()
    }
    # What nothing tells the broker of would else stand beside it under the same name.
    others = {
        copy: f"{copy} (another)" for copy in {*names.values()} - {*names} if copy != SNAPSHOT
    }
    return {**others, **names}


def _bytes_of_topics(pair: Pair, doubts: _Doubts) -> list[dict[str, Any]]:
    run, subject = pair.run, "bytes of internal topics"
    if not doubts.has(subject, "partition_usage"):
        return []
    now = usage_by_copy(run).filter("is_leading")
    live = _live_bytes(run, doubts)
    earlier = None
    why = _why_no_growth(pair)
    if why is None and pair.comparable is not None:
        earlier = _with_earlier_bytes(now, run, pair.comparable)
    found = []
    for (topic,), rows in sorted(now.group_by("topic"), key=lambda each: str(each[0][0])):
        row = {
            "topic": topic,
            "partitions": rows.height,
            "file_bytes": _whole_sum(rows["file_bytes"]),
            "live_bytes": live.get(str(topic)),
            "bytes_per_day": None,
            "reason": why,
        }
        if row["file_bytes"] is None:
            row["reason"] = "archived rows have no files"
        elif earlier is not None:
            then_bytes = _whole_sum(earlier.filter(pl.col("topic") == topic)["earlier_bytes"])
            if then_bytes is None or pair.days is None:
                row["reason"] = "the run before has other copies"
            else:
                row["bytes_per_day"] = round((row["file_bytes"] - then_bytes) / pair.days)
        found.append(row)
    return found


def _with_earlier_bytes(now: pl.DataFrame, run: AuditedRun, before: AuditedRun) -> pl.DataFrame:
    """Add `earlier_bytes`, of the same copies in the run before."""
    then = usage_by_copy(before).with_columns(
        pl.col("copy").replace(copies_as_named_by(run, before))
    )
    place = [*_PLACE, "is_fetched"]
    then = then.select(*place, pl.col("file_bytes").alias("earlier_bytes"))
    return now.join(then, on=place, how="left", nulls_equal=True)


def _why_no_growth(pair: Pair) -> str | None:
    """Return why nothing tells how fast bytes grew; null of the first run, and where they do."""
    if pair.before is None:
        return None
    if pair.difference is not None:
        return pair.difference.words
    if pair.days is None:
        return TOO_CLOSE
    if not pair.before.tables.has("partition_usage"):
        return "the run before has no table partition_usage"
    if pair.run.keeps_cleaned or pair.before.keeps_cleaned:
        return KEEPS_CLEANED
    return MAY_KEEP_CLEANED if None in (pair.run.keeps_cleaned, pair.before.keeps_cleaned) else None


def _live_bytes(run: AuditedRun, doubts: _Doubts) -> dict[str, int | None]:
    if not doubts.has("live bytes", "topic_usage"):
        return {}
    is_unknown = pl.col("live_records").is_not_null() & pl.col("live_bytes").is_null()
    sums = summed(
        run,
        "topic_usage",
        ["topic", "live_records", "live_bytes"],
        lambda rows: rows.group_by("topic").agg(
            pl.col("live_bytes").sum(), is_unknown.any().alias("is_unknown")
        ),
    )
    together = sums.group_by("topic").agg(pl.col("live_bytes").sum(), pl.col("is_unknown").any())
    return {
        str(topic): None if is_unknown else int(size)
        for topic, size, is_unknown in together.iter_rows()
    }


def _whole_sum(values: pl.Series) -> int | None:
    """Return the sum of numbers; None where one of them is not known."""
    return None if values.null_count() or not len(values) else int(values.sum())


def _bytes_together(topics: Sequence[Mapping[str, Any]], doubts: _Doubts) -> dict[str, Any]:
    """Return the sums of all internal topics, each None where that of one is not known."""
    sums: dict[str, Any] = {}
    for name in ("file_bytes", "live_bytes", "bytes_per_day"):
        values = [each[name] for each in topics]
        sums[name] = sum(values) if values and None not in values else None
    whys = [f"bytes of {each['topic']}: {each['reason']}" for each in topics if each["reason"]]
    doubts.reasons += whys[:1]
    return sums


# Events since the run before, as far as this run's dump shows them.


def _expiries(run: AuditedRun, since: datetime | None, doubts: _Doubts) -> dict[str, Any]:
    found: dict[str, Any] = {"expired_offsets": None, "expired_bound": None, "due_offsets": None}
    if doubts.has("offsets that are due", "offset_expiration"):
        due = summed(
            run,
            "offset_expiration",
            ["status"],
            lambda rows: rows.select(pl.col("status").is_in(["due", "overdue"]).sum()),
        )
        found["due_offsets"] = int(due["status"].sum())
    if not doubts.has("expired offsets", "offset_removals") or since is None:
        return found
    is_of_then = _is_between("removed_at", since, run.instant)
    sums = summed(
        run,
        "offset_removals",
        ["cause", "removed_at"],
        lambda rows: rows.select(
            (is_of_then & (pl.col("cause") == "expiration")).sum().alias("events"),
            ((is_of_then | pl.col("removed_at").is_null()) & (pl.col("cause") == "unknown"))
            .sum()
            .alias("unknown"),
            (pl.col("removed_at").is_null() & (pl.col("cause") == "expiration"))
            .sum()
            .alias("without_time"),
        ),
    ).sum()
    row = sums.row(0, named=True)
    found["expired_offsets"] = row["events"]
    found["expired_bound"] = _bound(run, may_be_more=row["unknown"] or row["without_time"])
    return found


def _rebalances(run: AuditedRun, since: datetime | None, doubts: _Doubts) -> dict[str, Any]:
    found: dict[str, Any] = {"rebalances": None, "rebalances_bound": None}
    if not doubts.has("rebalances", "rebalances") or since is None:
        return found
    is_of_then = _is_between("at", since, run.instant)
    sums = summed(
        run,
        "rebalances",
        ["at", "missing_before", "complete"],
        lambda rows: rows.select(
            is_of_then.sum().alias("events"),
            pl.when(is_of_then).then("missing_before").sum().cast(pl.Int64).alias("missing"),
            (pl.col("at").is_null() | (is_of_then & ~pl.col("complete"))).sum().alias("open"),
        ),
    ).sum()
    row = sums.row(0, named=True)
    found["rebalances"] = row["events"] + row["missing"]
    found["rebalances_bound"] = _bound(run, may_be_more=row["open"])
    return found


def _is_between(name: str, since: datetime, until: datetime) -> pl.Expr:
    at = pl.col(name)
    return ((at > since) & (at <= until)).fill_null(value=False)


def _bound(run: AuditedRun, *, may_be_more: Any) -> str:  # noqa: ANN401 - a count
    return EXACT if run.shows_history and not may_be_more else AT_LEAST


def _findings(run: AuditedRun, doubts: _Doubts) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys((*_SEVERITIES, "incidents"))
    if doubts.has("findings", "applied_rules"):
        columns = ["severity", "findings"]
        rules = pl.concat(frames(run, "applied_rules", columns))
        for each in _SEVERITIES:
            found[each] = int(rules.filter(pl.col("severity") == each)["findings"].sum())
    if doubts.has("incidents", "audit_incidents"):
        found["incidents"] = run.tables.count("audit_incidents")
    return found
