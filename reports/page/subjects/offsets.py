"""Committed offsets: which go when, what another retention would cost, which went and why.

What is left to read: lag of groups, and backlogs of share groups.

Of share groups: what is left to deliver, what blocks it, and how often it was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.offsets import (
    delivery_counts,
    expiry_calendar,
    largest_lags,
    removals_timeline,
    retention_matrix,
    share_window,
)
from reports.page.groups import TONES
from reports.page.model import Figure, Grid, Subject
from reports.page.rows import (
    at,
    columns_of,
    dicts,
    doubt_said,
    figure,
    grid_of,
    harmless,
    labels,
    moment,
    of_so_many,
    place,
    read_of,
    text_of,
)
from reports.page.workspace_tables import WorkspaceTables, is_of, is_one_of
from reports.plain_text import count, duration
from schemas import table
from schemas.expiration_rules import shared_names

# Removals: which committed offsets went, by what, and whether rightly.

_MOST_REMOVALS: Final = 20
_MOST_MARKS: Final = 1000
_REMOVAL_TONES: Final = {
    "early": "critical",
    "late": "warning",
    "cannot_tell": "warning",
    "on_time": "good",
}
_REMOVED: Final = "offset_removals"
_REMOVALS: Final = columns_of(_REMOVED, tones={"verdict": _REMOVAL_TONES})
_REMOVAL_KEY: Final = ("coordinator_partition", "record_offset")
_LATEST: Final = (
    *(("removed_at", "descending"), ("group_id", "ascending")),
    *((name, "ascending") for name in _REMOVAL_KEY),
)


def removals(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has(_REMOVED):
        return None
    columns = dict.fromkeys([*read_of(_REMOVALS), *_REMOVAL_KEY])
    latest = read.largest(_REMOVED, _LATEST, _MOST_MARKS, list(columns))
    known = latest.filter(pc.is_valid(latest["removed_at"]))
    rows = [
        {
            "at": at(row["removed_at"]),
            "cause": harmless(str(row["cause"]).replace("_", " ")),
            "verdict": harmless(str(row["verdict"]).replace("_", " ")),
        }
        for row in dicts(known, "removed_at", "cause", "verdict")
    ]
    newest = dicts(known.slice(0, 1), "group_id", "removed_at", "cause")
    says = (
        f"The latest is of {harmless(newest[0]['group_id'])}, "
        f"at {moment(newest[0]['removed_at'])}: {newest[0]['cause'].replace('_', ' ')}."
        if newest
        else ""
    )
    source = f"evaluations/{_REMOVED}"
    grid = grid_of(
        "removals-table",
        "Removed offsets, the latest first",
        latest,
        _REMOVALS,
        top=_MOST_REMOVALS,
        source=source,
        stories=stories,
    )
    return Subject(
        anchor="removals",
        title="Removals",
        question="Which committed offsets went, by what, and was it right?",
        notes=() if latest.num_rows else ("No committed offset was removed in this dump.",),
        figures=figure(
            "removals-timeline", "Removed offsets by cause (UTC)", says, rows, removals_timeline
        ),
        grids=(of_so_many(grid, read.count(_REMOVED), source),),
    )


# Expiry: which committed offsets go when, and what another retention would cost.

_EXPIRATION, _WHAT_IF = "offset_expiration", "retention_what_if"
_OF_WHAT_IF: Final = ("group_id", "retention_minutes", "verdict", "lost_now", "lost_once")
_EXPIRE: Final = ("group_id", "expires_at")
_SOON: Final = tuple(
    (name, "ascending") for name in ("expires_at", "group_id", "topic", "partition")
)
_NAME, _TRIED = "name", "retention_minutes"
_MOST_FIRST: Final = ("kept", "is_of_tool", *table(_WHAT_IF).key)
"""By which a row of a group that loses more comes before others."""
_MOST_GROUPS: Final = 14
_MOST_ROWS: Final = 20
_FINE: Final = {"safe", "not_lost_in_period"}
_NOBODY_LOSES: Final = (
    "No retention that was tried takes offsets of any group (evaluations/retention_what_if)."
)
_TONES: Final = {"overdue": "warning", "due": "critical", "cannot_tell": "warning"}
_COLUMNS: Final = columns_of("offset_expiration", tones={"status": _TONES})


def expiry(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("offset_expiration"):
        return None
    verdicts = _verdicts(read)
    is_safe = bool(verdicts) and verdicts <= _FINE
    return Subject(
        anchor="expiry",
        title="Expiry",
        question="Which committed offsets go when, and what would another retention cost?",
        notes=(_NOBODY_LOSES,) if is_safe else (),
        figures=(*_calendar(read), *(() if is_safe else _matrix(read))),
        grids=(_grid(read, stories),),
    )


def _grid(read: WorkspaceTables, stories: frozenset[str]) -> Grid:
    columns = read_of(_COLUMNS)
    source = f"evaluations/{_EXPIRATION}"
    grid = grid_of(
        "expiry-table",
        "Committed offsets, those that expire first",
        read.largest(_EXPIRATION, _SOON, _MOST_ROWS, columns),
        _COLUMNS,
        top=_MOST_ROWS,
        source=source,
        stories=stories,
    )
    return of_so_many(grid, read.count(_EXPIRATION), source)


def _verdicts(read: WorkspaceTables) -> set[str | None]:
    """Return the verdicts that retentions which were tried have."""
    if not read.has(_WHAT_IF):
        return set()
    pieces = read.tables.pieces(_WHAT_IF, ["verdict"])
    return {word for piece in pieces for word in pc.unique(piece["verdict"]).to_pylist()}


def _named(rows: pa.Table) -> pl.DataFrame:
    """Add `name`, which groups share that a tool named by itself, and whether one did."""
    group = pl.col("group_id")
    names = [
        pl.when(group.str.contains(f"^(?:{pattern})$")).then(pl.lit(name))
        for pattern, name in shared_names()
    ]
    shared = pl.coalesce(*names, pl.lit(None, pl.String))
    return pl.DataFrame(pl.from_arrow(rows)).with_columns(
        pl.coalesce(shared, group).alias(_NAME), shared.is_not_null().alias("is_of_tool")
    )


def _drawn(pieces: Iterable[pl.DataFrame], order: Sequence[str]) -> pl.DataFrame:
    """Return the first row of each name that is drawn, in order: of any number of rows.

    Args:
        pieces: Rows with `name`, some at a time; at least once.
        order: Columns by which a row comes before another.
    """
    held: list[pl.DataFrame] = []
    for piece in pieces:
        ordered = pl.concat([*held, piece]).sort(order)
        first = ordered.unique(_NAME, keep="first", maintain_order=True)
        held = [first.head(_MOST_GROUPS)]
    return held[0]


def _is_named(names: Sequence[str]) -> pl.Expr:
    """Return the condition that a group has one of some names, or is alike a group that has it."""
    of_tools = (
        pl.col("group_id").str.contains(f"^(?:{pattern})$")
        for pattern, name in shared_names()
        if name in names
    )
    return pl.any_horizontal(is_one_of("group_id", names), *of_tools)


def _of_names(
    read: WorkspaceTables, of: str, columns: Sequence[str], names: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table whose groups have some names, in any order."""
    for piece in read.scan(of, columns, _is_named(names)):
        yield _named(piece).filter(pl.col(_NAME).is_in(names))


def _soonest(read: WorkspaceTables) -> Iterator[pl.DataFrame]:
    """Yield when the first offsets of each group expire, of those that do, in any order."""
    for piece in read.scan(_EXPIRATION, _EXPIRE):
        times = pl.DataFrame(pl.from_arrow(piece)).drop_nulls("expires_at")
        yield _named(times.group_by("group_id").agg(pl.col("expires_at").min()).to_arrow())


def _calendar(read: WorkspaceTables) -> tuple[Figure, ...]:
    # Nobody comes back for what a tool committed that named its group by itself.
    drawn = _drawn(_soonest(read), ["is_of_tool", "expires_at", "group_id"])
    shown = pl.concat(
        rows.drop_nulls("expires_at").select(_NAME, "expires_at", "status").unique()
        for rows in _of_names(read, _EXPIRATION, [*_EXPIRE, "status"], drawn[_NAME].to_list())
    ).unique()
    named = labels(drawn[_NAME])
    # What expires at once is one mark.
    marks = {
        (named[name], at(time), status.replace("_", " ")) for name, time, status in shown.rows()
    }
    order = list(named.values())
    rows = [
        {"group": group, "at": time, "status": status}
        for group, time, status in sorted(marks, key=lambda each: (order.index(each[0]), each[1:]))
    ]
    first = next(drawn.iter_rows(named=True), None)
    says = (
        f"The first to expire are offsets of {harmless(first[_NAME])}, "
        f"at {moment(first['expires_at'])}."
        if first
        else ""
    )
    return figure(
        "expiry-calendar", "When committed offsets expire (UTC)", says, rows, expiry_calendar
    )


def _with_losses(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what those that lose most go by to what retentions would take of groups."""
    lost = (pl.col(name).fill_null(0) for name in ("lost_now", "lost_once"))
    return rows.with_columns((-pl.sum_horizontal(*lost)).alias("kept"))


def _matrix(read: WorkspaceTables) -> tuple[Figure, ...]:
    if not read.count(_WHAT_IF):
        return ()
    losses = (_with_losses(_named(each)) for each in read.scan(_WHAT_IF, _OF_WHAT_IF))
    drawn = _drawn(losses, _MOST_FIRST)
    names = drawn[_NAME].to_list()
    # Of groups that a tool named alike the one that loses most speaks for all.
    cells = drawn
    for each in map(_with_losses, _of_names(read, _WHAT_IF, _OF_WHAT_IF, names)):
        shown = pl.concat([cells, each]).sort(_MOST_FIRST)
        cells = shown.unique([_NAME, _TRIED], keep="first", maintain_order=True)
    named = labels(names)
    ordered = sorted(cells.rows(named=True), key=lambda row: (names.index(row[_NAME]), row[_TRIED]))
    rows = [
        {
            "group": named[row[_NAME]],
            "retention": duration(row[_TRIED] * 60_000),
            "verdict": (row["verdict"] or "cannot tell").replace("_", " "),
        }
        for row in ordered
    ]
    worst = drawn.row(0, named=True)
    says = (
        f"Under a retention of {duration(worst[_TRIED] * 60_000)}, "
        f"{harmless(worst[_NAME])}: {str(worst['verdict']).replace('_', ' ')}."
    )
    return figure(
        "retention-matrix",
        "What each retention would do to each group",
        says,
        rows,
        retention_matrix,
    )


# Lag: how far behind groups are, partition by partition.

_MOST_BARS: Final = 12
_MOST_LAGS: Final = 25
_LAGS: Final = columns_of("lag", tones={"verdict": TONES})
_LAG_COLUMNS: Final = {each.name: each for each in _LAGS}


def lag(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("lag"):
        return None
    return Subject(
        anchor="lag",
        title="Lag",
        question="How far behind is each group, is it getting worse, and what will be lost?",
        figures=(
            *_bars(read, "lag", "lag-largest", "The largest lags, in records"),
            *_bars(read, "time_lag_ms", "lag-oldest", "The oldest unread records"),
        ),
        grids=(_lags_grid(read, stories),),
    )


def _lags_grid(read: WorkspaceTables, stories: frozenset[str]) -> Grid:
    columns = [*read_of(_LAGS), "complete", "missing"]
    source = "evaluations/lag"
    grid = grid_of(
        "lag-table",
        "Partitions, the worst verdict first",
        read.first("lag", _MOST_LAGS, columns),
        _LAGS,
        top=_MOST_LAGS,
        source=source,
        stories=stories,
    )
    return of_so_many(grid, read.count("lag"), source)


def _bars(read: WorkspaceTables, column: str, anchor: str, title: str) -> tuple[Figure, ...]:
    shown = _LAG_COLUMNS[column]
    place_columns = ("group_id", "topic", "partition")
    order = [(column, "descending"), *((name, "ascending") for name in place_columns)]
    is_waited_for = (pl.col(column) > 0) & (pl.col("kind") != "stale")
    columns = [*place_columns, *read_of([shown]), "kind"]
    largest = read.largest("lag", order, _MOST_BARS, columns, is_waited_for)
    found = dicts(largest, *place_columns, *read_of([shown]))
    names = [f"{row['group_id']} {place(row)}" for row in found]
    named = labels(names)
    drawn = [
        {"place": named[name], "lag": row[column], "label": text_of(row, shown)}
        for name, row in zip(names, found, strict=True)
    ]
    says = f"The first is {harmless(names[0])} with {drawn[0]['label']}." if drawn else ""
    return figure(anchor, title, says, drawn, largest_lags)


_MOST_PLACES: Final = 12
_MOST_RANGES: Final = 1500
_MOST_BACKLOGS: Final = 20
_BACKLOGS: Final = columns_of("share_backlog", tones={"status": TONES})


def share(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where there are no share groups."""
    source = "evaluations/share_backlog"
    backlog = read.first("share_backlog", _MOST_BACKLOGS)
    if not backlog.num_rows:
        return None
    wanted = ("group_id", "topic", "partition", "start_offset", "status")
    first = dicts(backlog.slice(0, _MOST_PLACES), *wanted)
    return Subject(
        anchor="share",
        title="Share groups",
        question="What is left to deliver, what keeps the start offset where it is?",
        figures=(*_window(read, first), *_deliveries(read, first)),
        grids=(
            of_so_many(
                grid_of(
                    "share-table",
                    "Share partitions, the worst first",
                    backlog,
                    _BACKLOGS,
                    top=_MOST_BACKLOGS,
                    source=source,
                    stories=stories,
                ),
                read.count("share_backlog"),
                source,
            ),
        ),
    )


def _named_place(row: dict[str, object]) -> str:
    return f"{row['group_id']} {place(row)}"


def _of_places(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Return the rows of the share partitions that a chart shows."""
    if not table.num_rows:
        return table
    is_shown = [
        _named_place(row) in names for row in dicts(table, "group_id", "topic", "partition")
    ]
    return table.filter(pa.array(is_shown))


def _window(read: WorkspaceTables, first: list[dict[str, object]]) -> tuple[Figure, ...]:
    names = labels(map(_named_place, first))
    columns = ("group_id", "topic", "partition", "first_offset", "last_offset")
    table = read.rows("share_batches", where=is_of(row["group_id"] for row in first))
    batches = dicts(table, *columns, "delivery_state_name") if table.num_rows else []
    rows = [
        {
            "place": names[_named_place(row)],
            "first": row["first_offset"],
            "beyond": row["last_offset"] + 1,
            "state": row["delivery_state_name"],
        }
        for row in batches
        if _named_place(row) in names
    ][:_MOST_RANGES]
    starts = [
        {"place": names[_named_place(row)], "start": row["start_offset"]}
        for row in first
        if row["start_offset"] is not None
    ]
    says = (
        f"{harmless(_named_place(first[0]))} is {str(first[0]['status']).replace('_', ' ')}; "
        f"start offset {first[0]['start_offset']}. The upright line is the start offset; thick "
        f"is what is still to be dealt with.{doubt_said(_of_places(table, names))}"
    )
    return figure(
        "share-window",
        "Delivery states along the offsets",
        says,
        rows if starts else (),
        lambda found, anchor: share_window(found, starts, anchor),
    )


def _deliveries(read: WorkspaceTables, first: list[dict[str, object]]) -> tuple[Figure, ...]:
    names = labels(map(_named_place, first))
    columns = ("group_id", "topic", "partition", "delivery_count", "delivery_state_name", "records")
    table = read.rows("share_delivery_counts", where=is_of(row["group_id"] for row in first))
    known = [
        row
        for row in (dicts(table, *columns) if table.num_rows else [])
        if _named_place(row) in names and row["delivery_count"] is not None
    ]
    known.sort(key=lambda row: list(names).index(_named_place(row)))
    rows = [
        {
            "place": names[_named_place(row)],
            "deliveries": row["delivery_count"],
            "state": row["delivery_state_name"],
            "records": row["records"],
            "label": f"{row['records']:,}",
        }
        for row in known
    ]
    most = max(known, key=lambda row: int(row["delivery_count"]), default=None)
    doubt = doubt_said(_of_places(table, names))
    says = (
        f"Delivered the most often: {count(most['records'], 'record')} of "
        f"{harmless(_named_place(most))}: {most['delivery_count']} times, "
        f"{str(most['delivery_state_name']).lower()}.{doubt}"
        if most
        else ""
    )
    return figure(
        "share-deliveries", "Records by how often they were delivered", says, rows, delivery_counts
    )
