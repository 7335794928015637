"""Committed offsets: which go when, what another retention would cost, which went and why."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.offsets import expiry_calendar, removals_timeline, retention_matrix
from reports.page.model import Figure, Grid, Subject
from reports.page.rows import at, columns_of, dicts, figure, grid_of, labels, of_so_many
from reports.page.texts import harmless, moment
from reports.page.workspace_tables import WorkspaceTables
from reports.quantities import duration
from schemas.expiration_rules import shared_name, tool_naming

# Removals: which committed offsets went, by what, and whether rightly.

_MOST_REMOVALS: Final = 20
_MOST_MARKS: Final = 1000
_REMOVAL_TONES: Final = {
    "early": "critical",
    "late": "warning",
    "cannot_tell": "warning",
    "on_time": "good",
}
_REMOVALS: Final = columns_of("offset_removals", tones={"verdict": _REMOVAL_TONES})


def removals(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("offset_removals"):
        return None
    table = read.rows("offset_removals")
    latest = table.sort_by([("removed_at", "descending"), ("group_id", "ascending")])
    known = latest.filter(pc.is_valid(latest["removed_at"]))
    rows = [
        {
            "at": at(row["removed_at"]),
            "cause": harmless(str(row["cause"]).replace("_", " ")),
            "verdict": harmless(str(row["verdict"]).replace("_", " ")),
        }
        for row in dicts(known.slice(0, _MOST_MARKS), "removed_at", "cause", "verdict")
    ]
    newest = dicts(known.slice(0, 1), "group_id", "removed_at", "cause")
    says = (
        f"The latest is of {harmless(newest[0]['group_id'])}, "
        f"at {moment(newest[0]['removed_at'])}: {newest[0]['cause'].replace('_', ' ')}."
        if newest
        else ""
    )
    return Subject(
        anchor="removals",
        title="Removals",
        question="Which committed offsets went, by what, and was it right?",
        notes=() if table.num_rows else ("No committed offset was removed in this dump.",),
        figures=figure(
            "removals-timeline", "Removed offsets by cause (UTC)", says, rows, removals_timeline
        ),
        grids=(
            grid_of(
                "removals-table",
                "Removed offsets, the latest first",
                latest,
                _REMOVALS,
                top=_MOST_REMOVALS,
                source="evaluations/offset_removals",
                stories=stories,
            ),
        ),
    )


# Expiry: which committed offsets go when, and what another retention would cost.

_EXPIRATION, _WHAT_IF = "offset_expiration", "retention_what_if"
_OF_WHAT_IF: Final = ("group_id", "retention_minutes", "verdict", "lost_now", "lost_once")
_SOON: Final = (("expires_at", "ascending"), ("group_id", "ascending"))
_SOON_BY_PARTITION: Final = (*_SOON, ("topic", "ascending"), ("partition", "ascending"))
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
    what_if = read.rows(_WHAT_IF, _OF_WHAT_IF)
    is_safe = bool(what_if.num_rows) and set(pc.unique(what_if["verdict"]).to_pylist()) <= _FINE
    return Subject(
        anchor="expiry",
        title="Expiry",
        question="Which committed offsets go when, and what would another retention cost?",
        notes=(_NOBODY_LOSES,) if is_safe else (),
        figures=(*_calendar(read), *(() if is_safe else _matrix(what_if))),
        grids=(_grid(read, stories),),
    )


def _grid(read: WorkspaceTables, stories: frozenset[str]) -> Grid:
    columns = [each.name for each in _COLUMNS]
    source = f"evaluations/{_EXPIRATION}"
    grid = grid_of(
        "expiry-table",
        "Committed offsets, those that expire first",
        read.largest(_EXPIRATION, _SOON_BY_PARTITION, _MOST_ROWS, columns),
        _COLUMNS,
        top=_MOST_ROWS,
        source=source,
        stories=stories,
    )
    return of_so_many(grid, read.count(_EXPIRATION), source)


def _together(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in which groups that a tool named by itself have one name and stand last."""
    named = [{**row, "group_id": shared_name(row["group_id"])} for row in rows]
    are_tools = [tool_naming(row["group_id"]) is not None for row in rows]
    order = sorted(range(len(rows)), key=are_tools.__getitem__)
    return [named[place] for place in order]


def _of_first_groups(rows: pa.Table, losses: pa.ChunkedArray) -> pa.Table:
    """Return the rows of the groups that are drawn, in their order.

    There may be millions of rows: of those of other groups nothing is turned into Python.

    Args:
        rows: Those of a group that come first say where it stands, as `_together` has it.
        losses: Of each row: groups that lose more go before all others.
    """
    ranked = pa.table({"group_id": rows["group_id"], "loss": losses})
    ranked = ranked.take(pc.sort_indices(ranked, [("loss", "descending")]))
    ranked = ranked.group_by("group_id", use_threads=False).aggregate([("loss", "max")])
    known = [{**row, "named": row["group_id"]} for row in ranked.to_pylist()]
    together = sorted(_together(known), key=lambda row: -row["loss_max"])
    return rows.filter(pc.is_in(rows["group_id"], _drawn_groups(together)))


def _drawn_groups(together: list[dict[str, Any]]) -> pa.Array:
    """Return the names, as they are, of the groups that are drawn: the first of those given."""
    shown = list(dict.fromkeys(row["group_id"] for row in together))[:_MOST_GROUPS]
    wanted = [row["named"] for row in together if row["group_id"] in shown]
    return pa.array(wanted, pa.string())


def _first_expiring(read: WorkspaceTables) -> list[str]:
    """Return the groups of which offsets expire, those first of which one does."""
    held: list[pa.Table] = []
    is_timed = pc.is_valid(pc.field("expires_at"))
    for piece in read.tables.pieces(_EXPIRATION, ["group_id", "expires_at"]):
        rows = pa.concat_tables([*held, piece.filter(is_timed)])
        soon = rows.take(pc.sort_indices(rows, list(_SOON)))
        first = soon.group_by("group_id", use_threads=False).aggregate([("expires_at", "first")])
        held = [first.rename_columns(["group_id", "expires_at"])]
    names: list[str] = held[0]["group_id"].to_pylist()
    return names


def _calendar(read: WorkspaceTables) -> tuple[Figure, ...]:
    together = _together([{"group_id": each, "named": each} for each in _first_expiring(read)])
    is_drawn = pc.field("group_id").isin(_drawn_groups(together))
    columns = ["group_id", "expires_at", "status"]
    timed = read.rows(_EXPIRATION, columns, is_drawn & pc.is_valid(pc.field("expires_at")))
    timed = timed.take(pc.sort_indices(timed, list(_SOON)))
    timed = timed.group_by(timed.column_names, use_threads=False).aggregate([])
    known = _together(dicts(timed, "group_id", "expires_at", "status"))
    groups = list(dict.fromkeys(row["group_id"] for row in known))[:_MOST_GROUPS]
    named = labels(groups)
    # What expires at once is one mark.
    marks = {
        (named[row["group_id"]], at(row["expires_at"]), row["status"].replace("_", " "))
        for row in known
        if row["group_id"] in named
    }
    order = list(named.values())
    rows = [
        {"group": group, "at": time, "status": status}
        for group, time, status in sorted(marks, key=lambda each: (order.index(each[0]), each[1:]))
    ]
    first = known[0] if known else None
    says = (
        f"The first to expire are offsets of {harmless(first['group_id'])}, "
        f"at {moment(first['expires_at'])}."
        if first
        else ""
    )
    return figure(
        "expiry-calendar", "When committed offsets expire (UTC)", says, rows, expiry_calendar
    )


def _matrix(what_if: pa.Table) -> tuple[Figure, ...]:
    lost = (pc.fill_null(what_if[name], 0) for name in ("lost_now", "lost_once"))
    known = []
    if what_if.num_rows:
        known = _together(dicts(_of_first_groups(what_if, pc.add(*lost)), *_OF_WHAT_IF))
    known.sort(key=lambda row: -((row["lost_now"] or 0) + (row["lost_once"] or 0)))
    groups = list(dict.fromkeys(row["group_id"] for row in known))[:_MOST_GROUPS]
    named = labels(groups)
    shown = sorted(
        (row for row in known if row["group_id"] in named),
        key=lambda row: (groups.index(row["group_id"]), row["retention_minutes"]),
    )
    # Of groups that a tool named alike the one that loses most speaks for all.
    cells = {(row["group_id"], row["retention_minutes"]): row for row in reversed(shown)}
    rows = [
        {
            "group": named[row["group_id"]],
            "retention": duration(row["retention_minutes"] * 60_000),
            "verdict": (row["verdict"] or "cannot tell").replace("_", " "),
        }
        for row in reversed(cells.values())
    ]
    worst = known[0] if known else None
    says = (
        f"Under a retention of {duration(worst['retention_minutes'] * 60_000)}, "
        f"{harmless(worst['group_id'])}: {str(worst['verdict']).replace('_', ' ')}."
        if worst
        else ""
    )
    return figure(
        "retention-matrix",
        "What each retention would do to each group",
        says,
        rows,
        retention_matrix,
    )
