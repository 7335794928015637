"""Each group of an audit in one row: what other tables say of it, and its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_rows, polars_rows, table_of, table_of_frame
from analytics.questions.lag.sums import sums_of
from analytics.questions.lag.table import CANNOT_TELL
from analytics.questions.share.status import sums_of as share_sums_of
from analytics.tables.parted_table import Order
from schemas import table
from schemas.evaluation_rules import lag_rules
from schemas.finding_rules import SEVERITIES
from schemas.share_rules import share_rules

NOT_KNOWN: Final = "not known"
NONE: Final = "none"
PROPERTIES: Final = ("severity", "group_type", "state", "verdict", "status")
UNTOLD: Final = "cannot tell"
_KEY: Final = "group_id"
_MARKED: Final = {"lag": "verdict", "share_backlog": "status"}
"""Tables of partitions that may not be told, with the column that says so where all is there."""

_MARKS: Final = ("complete", "missing")
READ: Final[Mapping[str, Sequence[str]]] = {
    "groups": (_KEY, "group_type", "state", "member_count", *_MARKS),
    "lag": (
        *(_KEY, "topic", "partition", "lag", "status", "reason", "kind", "lost_offsets"),
        *("verdict", "commits", "time_lag_ms", "time_lag_bound", "last_commit_at"),
        *("log_end_bound", *_MARKS),
    ),
    "share_backlog": tuple(each.name for each in table("share_backlog").columns),
    "offset_expiration": (_KEY, "expires_at"),
    "assignment_balance": (_KEY, "score"),
    "group_churn": (_KEY, "per_hour"),
}
"""What is read of other tables."""

Tables = Mapping[str, pa.Table]


def audited_groups(tables: Tables) -> pa.Table:
    """Return the table `audited_groups`.

    Args:
        tables: Those of `READ` and `findings`, each where there is one.
    """
    parts = [
        _groups(tables["groups"]),
        _partitions(tables),
        _busiest(tables),
        _aggregated(tables, "offset_expiration", {"expires_at": ("min", "next_expires_at")}),
        _aggregated(tables, "assignment_balance", {"score": ("min", "balance_score")}),
        _aggregated(tables, "group_churn", {"per_hour": ("max", "rebalances_per_hour")}),
        *(_findings(tables, each) for each in SEVERITIES),
    ]
    parts += [_missing(tables, name) for name in _MARKED]
    known = [each for each in parts if each is not None]
    joined = reduce(_joined, known)
    # Where lag was not asked about, no partition is known to have one: that is not 0.
    for name in (*SEVERITIES, *(["lag_not_told"] if "lag" in tables else [])):
        joined = _filled(joined, name)
    return in_order(_as_contract(_with_marks(joined)))


def _missing(tables: Tables, name: str) -> pa.Table | None:
    """Return why partitions of groups cannot be told: of each group what the first one says."""
    rows = tables.get(name)
    if rows is None:
        return None
    is_open = pc.or_(
        pc.invert(pc.fill_null(rows["complete"], fill_value=True)),
        pc.equal(rows[_MARKED[name]], CANNOT_TELL),
    )
    rows = rows.filter(pc.fill_null(is_open, fill_value=False))
    why = pc.coalesce(rows["missing"], rows["reason"], UNTOLD)
    told = pa.table({_KEY: rows[_KEY], "topic": rows["topic"], "partition": rows["partition"]})
    told = told.append_column("why", why)
    told = told.sort_by([(each, "ascending") for each in (_KEY, "topic", "partition")])
    found = told.group_by(_KEY, use_threads=False).aggregate([("why", "first")])
    return found.select([_KEY, "why_first"]).rename_columns([_KEY, f"{name}_missing"])


def _with_marks(rows: pa.Table) -> pa.Table:
    """Put together what is missing of a group and of its partitions."""
    marks = [
        rows[name]
        for name in ("missing", *(f"{each}_missing" for each in _MARKED))
        if name in rows.column_names
    ]
    missing = pc.coalesce(*marks)
    complete = pc.if_else(pc.is_valid(missing), pa.scalar(value=False), rows["complete"])
    for name, column in (("missing", missing), ("complete", complete)):
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def in_order(rows: pa.Table) -> pa.Table:
    """Return groups, those with the worst findings first, then those with the largest lag."""
    return arrow_rows(WORST_FIRST.sort(polars_rows(rows)))


def _worst_first(rows: pl.DataFrame) -> pl.DataFrame:
    descending = [*(True for _ in _WORST), False]
    order = [*_WORST, _KEY]
    return rows.sort(order, descending=descending, nulls_last=True, maintain_order=True)


_WORST: Final = (*SEVERITIES, "lag")
WORST_FIRST: Final = Order((*_WORST, _KEY), _worst_first)
"""The order of groups: those with the worst findings first, then those with the largest lag."""


def group_counts(groups: pa.Table) -> pa.Table:
    """Return the table `audited_group_counts`: how many groups are alike.

    Args:
        groups: `audited_groups`.
    """
    has = pc.make_struct(*(pc.greater(groups[name], 0) for name in SEVERITIES))
    worst = pc.case_when(has, *SEVERITIES, NONE)
    columns = {**{name: groups[name] for name in PROPERTIES[1:]}, "severity": worst}
    parts = [_counted(name, columns[name]) for name in PROPERTIES]
    return counts_together([pa.concat_tables(parts)])


def counts_together(parts: Sequence[pa.Table]) -> pa.Table:
    """Return `audited_group_counts` of all groups: of each property the commonest value first."""
    rows = polars_rows(pa.concat_tables(parts))
    counts = rows.group_by("property", "value").agg(pl.col("groups").sum())
    place = pl.col("property").replace_strict({name: n for n, name in enumerate(PROPERTIES)})
    ordered = counts.sort(place, "groups", "value", descending=[False, True, False])
    return table_of_frame("audited_group_counts", ordered)


def _counted(name: str, column: pa.ChunkedArray) -> pa.Table:
    filled = pc.fill_null(pc.cast(column, pa.string()), NOT_KNOWN)
    counts = pa.table({"value": filled}).group_by("value").aggregate([([], "count_all")])
    names = pa.repeat(name, counts.num_rows)
    return pa.table({"property": names, "value": counts["value"], "groups": counts["count_all"]})


def _groups(groups: pa.Table) -> pa.Table:
    taken = [_KEY, "group_type", "state", "member_count", "complete", "missing"]
    return groups.select(taken).rename_columns(
        [_KEY, "group_type", "state", "members", "complete", "missing"]
    )


def _partitions(tables: Tables) -> pa.Table | None:
    """Return what partitions come to, of consumers and of share groups."""
    lag, shares = tables.get("lag"), tables.get("share_backlog")
    parts = []
    if lag is not None and lag.num_rows:
        sums = arrow_rows(sums_of(polars_rows(lag), "group", lag_rules()))
        parts.append(_joined(_sums(sums, sums["verdict"], sums["status"]), _spread(lag)))
    if shares is not None and shares.num_rows:
        sums = arrow_rows(share_sums_of(polars_rows(shares), "group", share_rules()))
        parts.append(_joined(_sums(sums, sums["status"], None), _spread(shares)))
    if not parts:
        return None
    both = pa.concat_tables(parts, promote_options="default")
    # A group that was another type once may have rows of both.
    names = [each for each in both.column_names if each != _KEY]
    first = both.group_by(_KEY, use_threads=False).aggregate([(name, "first") for name in names])
    return first.select([_KEY, *(f"{name}_first" for name in names)]).rename_columns([_KEY, *names])


def _sums(sums: pa.Table, verdict: pa.ChunkedArray, status: pa.ChunkedArray | None) -> pa.Table:
    return pa.table(
        {
            _KEY: sums[_KEY],
            "partitions": sums["partitions"],
            "lag": sums["lag"],
            "lag_bound": sums["lag_bound"],
            "lag_not_told": sums["unknown_lag"],
            "verdict": verdict,
            "status": pa.nulls(sums.num_rows, pa.string()) if status is None else status,
        }
    )


def _spread(rows: pa.Table) -> pa.Table:
    """Return of how many topics a group's rows are, and the ends of its times."""
    there = {"time_lag_ms": pa.int64(), "last_commit_at": pa.timestamp("us", tz="UTC")}
    known = pa.table(
        {
            _KEY: rows[_KEY],
            "topic": rows["topic"],
            **{
                name: rows[name] if name in rows.column_names else pa.nulls(rows.num_rows, type_)
                for name, type_ in there.items()
            },
        }
    )
    known = known.append_column(_IS_BOUND, _is_bound(rows))
    wanted = [("topic", "count_distinct"), *((name, "max") for name in (*there, _IS_BOUND))]
    found = known.group_by(_KEY, use_threads=False).aggregate(wanted)
    bound = pc.if_else(found[f"{_IS_BOUND}_max"], "at_least", "exact")
    is_known = pc.is_valid(found["time_lag_ms_max"])
    return (
        found.select([_KEY, "topic_count_distinct", *(f"{name}_max" for name in there)])
        .rename_columns([_KEY, "topics", *there])
        .append_column("time_lag_bound", pc.if_else(is_known, bound, None))
    )


_IS_BOUND: Final = "is_bound"


def _is_bound(rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    """Return of each partition whether the largest age of its group may be larger for it."""
    if "time_lag_bound" not in rows.column_names:
        return pa.repeat(False, rows.num_rows)  # noqa: FBT003
    return pc.fill_null(pc.not_equal(rows["time_lag_bound"], "exact"), fill_value=True)


def _busiest(tables: Tables) -> pa.Table | None:
    lag = tables.get("lag")
    if lag is None or not lag.num_rows:
        return None
    wanted = lag.select([_KEY, "topic", "partition", "commits"])
    order = [(_KEY, "ascending"), ("commits", "descending")]
    rows = wanted.sort_by([*order, ("topic", "ascending"), ("partition", "ascending")])
    first = rows.group_by(_KEY, use_threads=False).aggregate(
        [("topic", "first"), ("partition", "first")]
    )
    return first.select([_KEY, "topic_first", "partition_first"]).rename_columns(
        [_KEY, "busiest_topic", "busiest_partition"]
    )


def _aggregated(
    tables: Tables, name: str, columns: Mapping[str, tuple[str, str]]
) -> pa.Table | None:
    rows = tables.get(name)
    if rows is None or not rows.num_rows:
        return None
    taken = [(column, how) for column, (how, _) in columns.items()]
    found = rows.group_by(_KEY, use_threads=False).aggregate(taken)
    return pa.table(
        {
            _KEY: found[_KEY],
            **{new: found[f"{column}_{how}"] for column, (how, new) in columns.items()},
        }
    )


def _findings(tables: Tables, severity: str) -> pa.Table:
    rows = tables["findings"].select([_KEY, "severity"])
    mine = rows.filter(pc.and_(pc.equal(rows["severity"], severity), pc.is_valid(rows[_KEY])))
    found = mine.group_by(_KEY, use_threads=False).aggregate([("severity", "count")])
    return pa.table({_KEY: found[_KEY], severity: found["severity_count"]})


def _joined(left: pa.Table, right: pa.Table) -> pa.Table:
    return left.join(right, _KEY, join_type="full outer", use_threads=False)


def _filled(rows: pa.Table, name: str) -> pa.Table:
    if name not in rows.column_names:
        return rows.append_column(name, pa.repeat(0, rows.num_rows))
    place = rows.column_names.index(name)
    return rows.set_column(place, name, pc.fill_null(rows[name], 0))


def _as_contract(rows: pa.Table) -> pa.Table:
    """Return rows with the columns of the contract, in its order and types."""
    empty = table_of("audited_groups", [])
    return pa.table(
        {
            each.name: rows[each.name].cast(empty.schema.field(each.name).type)
            if each.name in rows.column_names
            else pa.nulls(rows.num_rows, empty.schema.field(each.name).type)
            for each in table("audited_groups").columns
        }
    )
