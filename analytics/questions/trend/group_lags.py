"""The lags of the groups that are furthest behind, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from analytics.questions.trend.changes import largest
from analytics.questions.trend.figures import AT_LEAST, ESTIMATED, EXACT, frames
from analytics.questions.trend.runs import AuditedRun, Pair

LAG: Final = "trend_lag"


def furthest_behind(run: AuditedRun, most: int) -> list[str]:
    """Return the groups with the largest lags in one run."""
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
            found.append(_lag_row(pair, group, here or _NO_LAG, then))
        earlier = now
    return found


_NO_LAG: Final[Mapping[str, Any]] = {"lag": None, "bound": None, "reason": "it is not in this run"}


def _known_lags(run: AuditedRun, groups: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    if not run.tables.has("audited_groups"):
        return {}
    kept = pl.concat(
        rows.filter(pl.col("group_id").is_in(list(groups)))
        for rows in frames(run, "audited_groups", _LAG)
    )
    return {row["group_id"]: _known_lag(row) for row in kept.iter_rows(named=True)}


def _known_lag(row: Mapping[str, Any]) -> Mapping[str, Any]:
    if row["lag"] is None:
        return {"lag": None, "bound": None, "reason": "its lag is not known"}
    if row["lag_not_told"]:
        why = "the lag of some of its partitions is not known"
        return {"lag": row["lag"], "bound": AT_LEAST, "reason": why}
    if row["complete"] is False:
        return {"lag": row["lag"], "bound": ESTIMATED, "reason": None}
    return {"lag": row["lag"], "bound": EXACT, "reason": None}


def _lag_row(
    pair: Pair, group: str, here: Mapping[str, Any], then: Mapping[str, Any] | None
) -> dict[str, Any]:
    before = then or {"lag": None, "bound": None, "reason": None}
    whys = [here["reason"]]
    if pair.before is not None:
        whys.append(
            "it is not in the run before"
            if then is None
            else before["reason"] and f"in the run before {before['reason']}"
        )
    if pair.difference is not None:
        whys.append(pair.difference.words)
    is_whole = AT_LEAST not in (here["bound"], before["bound"])
    grown = None
    if pair.comparable is not None and is_whole and None not in (here["lag"], before["lag"]):
        grown = here["lag"] - before["lag"]
    return {
        "cluster": pair.cluster,
        "as_of": pair.run.as_of,
        "group_id": group,
        "lag": here["lag"],
        "lag_bound": here["bound"],
        "earlier_lag": before["lag"],
        "earlier_lag_bound": before["bound"],
        "grown": grown,
        "grown_per_day": None if grown is None else grown / pair.days,
        "reason": "; ".join(filter(None, whys)) or None,
    }
