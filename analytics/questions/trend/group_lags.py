"""The lags of the groups that are furthest behind, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from analytics.questions.sums import AT_LEAST, AT_LEAST_ABOUT
from analytics.questions.trend.changes import largest
from analytics.questions.trend.figures import ESTIMATED, EXACT, INTERPOLATED, frames
from analytics.questions.trend.runs import TOO_CLOSE, AuditedRun, Pair

LAG: Final = "trend_lag"


def furthest_behind(run: AuditedRun, most: int) -> list[str]:
    """Return the groups with the largest lags in one run."""
    if not run.tables.has("audited_groups"):
        return []
    held: pl.DataFrame | None = None
    for rows in frames(run, "audited_groups", ["group_id", "lag"]):
        mine = rows.filter(pl.col("lag") > 0)
        held = largest(mine if held is None else pl.concat([held, mine]), "lag", most)
    return [] if held is None else held["group_id"].to_list()


_LAG: Final = ["group_id", "lag", "lag_not_told", "complete"]


def lag_of_groups(pairs: Sequence[Pair], groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return `trend_lag`: the lags of some groups in each run of a cluster.

    Args:
        pairs: Of one cluster, in order.
        groups: Their names.
    """
    found: list[dict[str, Any]] = []
    earlier: dict[str, Mapping[str, Any]] = {}
    for pair in pairs:
        now = _known_lags(pair.run, groups)
        for group in groups:
            here, then = now.get(group), earlier.get(group)
            if here is None and then is None:
                continue
            found.append(_lag_row(pair, group, here or _NO_LAG, then or _NO_LAG))
        earlier = now
    return found


_NO_LAG: Final[Mapping[str, Any]] = {"lag": None, "bound": None, "reason": "the group is not there"}
_NO_TABLE: Final = {**_NO_LAG, "reason": "there is no table audited_groups"}


def _known_lags(run: AuditedRun, groups: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    if not run.tables.has("audited_groups"):
        return dict.fromkeys(groups, _NO_TABLE)
    kept = pl.concat(
        rows.filter(pl.col("group_id").is_in(list(groups)))
        for rows in frames(run, "audited_groups", _LAG)
    )
    interpolated = _with_interpolated_ends(run, groups)
    return {
        row["group_id"]: _known_lag(row, is_interpolated=row["group_id"] in interpolated)
        for row in kept.iter_rows(named=True)
    }


def _with_interpolated_ends(run: AuditedRun, groups: Sequence[str]) -> frozenset[str]:
    """Return the groups of which the end of a log is only interpolated."""
    if not run.tables.has("lag"):
        return frozenset()
    is_wanted = pl.col("group_id").is_in(list(groups)) & (pl.col("log_end_bound") == INTERPOLATED)
    return frozenset(
        group
        for rows in frames(run, "lag", ["group_id", "log_end_bound"])
        for group in rows.filter(is_wanted)["group_id"]
    )


def _known_lag(row: Mapping[str, Any], *, is_interpolated: bool) -> Mapping[str, Any]:
    if row["lag"] is None:
        return {"lag": None, "bound": None, "reason": "its lag is not known"}
    if row["lag_not_told"]:
        why = "the lag of some of its partitions is not known"
        bound = AT_LEAST_ABOUT if is_interpolated else AT_LEAST
        return {"lag": row["lag"], "bound": bound, "reason": why}
    if row["complete"] is False or is_interpolated:
        return {"lag": row["lag"], "bound": ESTIMATED, "reason": None}
    return {"lag": row["lag"], "bound": EXACT, "reason": None}


_OPEN: Final = frozenset({AT_LEAST, AT_LEAST_ABOUT, None})
"""Bounds of lags whose difference says nothing."""


def _lag_row(
    pair: Pair, group: str, here: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    whys = [here["reason"]]
    if pair.before is not None:
        whys.append(before["reason"] and f"in the run before {before['reason']}")
    if pair.difference is not None:
        whys.append(pair.difference.words)
    bounds = here["bound"], before["bound"]
    grown = a_day = grown_bound = None
    is_open = not _OPEN.isdisjoint(bounds)
    if pair.comparable is not None and not is_open:
        grown = here["lag"] - before["lag"]
        grown_bound = ESTIMATED if ESTIMATED in bounds else EXACT
        a_day = None if pair.days is None else grown / pair.days
        if a_day is None:
            whys.append(TOO_CLOSE)
    return {
        "cluster": pair.cluster,
        "as_of": pair.run.as_of,
        "group_id": group,
        "lag": here["lag"],
        "lag_bound": here["bound"],
        "earlier_lag": before["lag"],
        "earlier_lag_bound": before["bound"],
        "grown": grown,
        "grown_bound": grown_bound,
        "grown_per_day": a_day,
        "reason": "; ".join(filter(None, whys)) or None,
    }
