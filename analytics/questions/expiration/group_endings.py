"""The table `group_endings`: what became of groups whose offsets have all expired.

KIP-211, "Transitioning to Empty State": all offsets of the group are removed and the group becomes
Dead; brokers then write its tombstone, in what shipped with those of its offsets
(``GroupCoordinatorService.cleanupGroupMetadata``). A group with members, or with a commit pending
in a transaction, stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from schemas.expiration_rules import AuditRules, group_endings, tool_naming

if TYPE_CHECKING:
    from collections.abc import Iterable

EXPIRATION, UNKNOWN = "expiration", "unknown"
CLASSIC: Final = "classic"
STILL_THERE, CANNOT_TELL, BY_TRANSACTION, BY_MEMBERS, UNDER_WAY, GONE, DEAD = group_endings()
NO_TOMBSTONE = (
    "compaction may have taken its tombstone, or none was written: releases before 4.0 write none "
    "for a group that never had a generation"
)
NOT_SINCE = "no record shows since when the group has no members"
NOT_TOLD = "whether {} more of its offsets expired cannot be told"
NO_INTERVAL = "how often the coordinator cleans up is assumed"


@dataclass(frozen=True)
class EndingTables:
    """What is known at the instant.

    Attributes:
        removals: `offset_removals`.
        committed: `committed_offsets`, or any table of theirs with `group_id`.
        pending: `pending_offsets`.
        groups: `groups`.
        tombstones: Of groups: `group_id`, `coordinator_partition`, `offset`, `timestamp`.
    """

    removals: pa.Table
    committed: pa.Table
    pending: pa.Table
    groups: pa.Table
    tombstones: pa.Table


@dataclass(frozen=True)
class Cleanups:
    """How often coordinators clean up.

    Attributes:
        interval_ms: The check interval.
        is_assumed: Whether that is Kafka's default, for want of settings.
        rules: What is on time.
        now_ms: The instant, in epoch milliseconds.
    """

    interval_ms: int
    is_assumed: bool
    rules: AuditRules
    now_ms: int

    def has_been(self, since_ms: int) -> bool:
        """Return whether a cleanup must have been since a time."""
        slack = max(round(self.interval_ms * self.rules.slack_share), self.rules.slack_least_ms)
        return self.now_ms > since_ms + self.interval_ms + slack


def endings(tables: EndingTables, cleanups: Cleanups) -> pa.Table:
    """Return the table, the worst verdict first."""
    expired = _expired(tables.removals)
    # There may be a great many groups; few have come to their end.
    ended = pa.array([row["group_id"] for row in expired], pa.string())
    with_offsets = set(_named(tables.committed, ended)["group_id"].to_pylist())
    pending = set(tables.pending["group_id"].to_pylist())
    state = {row["group_id"]: row for row in _named(tables.groups, ended).to_pylist()}
    tombstones = _tombstones(tables.tombstones)
    rows = []
    for row in expired:
        group = row["group_id"]
        # Of several lives the last one counts: who committed again is not at its end.
        if group in with_offsets:
            continue
        after = _first_after(tombstones.get(group, ()), row)
        verdict, reason = _verdict(row, state.get(group), after, cleanups, group in pending)
        if reason is None and row["untold"]:
            reason = NOT_TOLD.format(row["untold"])
        rows.append(
            {
                **row,
                "group_type": state[group]["group_type"] if group in state else None,
                "tombstone_at": after and after["timestamp"],
                "tombstone_offset": after and after["offset"],
                "verdict": verdict,
                "reason": reason,
                "named_by": tool_naming(group),
            }
        )
    rank = list(group_endings())
    rows.sort(key=lambda row: (rank.index(row["verdict"]), row["group_id"]))
    return table_of("group_endings", rows)


def _named(rows: pa.Table, groups: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["group_id"], groups))


def _expired(removals: pa.Table) -> list[dict[str, Any]]:
    """Return of each group whose last removal was an expiration that one, and how many expired.

    And of how many more that is not known: `untold`.
    """
    columns = ["group_id", "cause", "verdict", "removed_at", "coordinator_partition"]
    rows = pl.DataFrame(pl.from_arrow(removals.select([*columns, "record_offset"])))
    last = (
        rows.sort("group_id", "record_offset", maintain_order=True)
        .group_by("group_id", maintain_order=True)
        .agg(
            pl.all().last(),
            (pl.col("cause") == EXPIRATION).sum().alias("offsets"),
            (pl.col("cause") == UNKNOWN).sum().alias("untold"),
        )
    )
    return last.filter(pl.col("cause") == EXPIRATION).to_dicts()


def _tombstones(rows: pa.Table) -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.sort_by([("offset", "ascending")]).to_pylist():
        found.setdefault(row["group_id"], []).append(row)
    return found


def _first_after(
    tombstones: Iterable[dict[str, Any]], removal: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the first tombstone of a group behind the removal, in the same partition."""
    return next(
        (
            each
            for each in tombstones
            if each["coordinator_partition"] == removal["coordinator_partition"]
            and each["offset"] > removal["record_offset"]
        ),
        None,
    )


def _verdict(
    removal: Mapping[str, Any],
    group: Mapping[str, Any] | None,
    tombstone: Mapping[str, Any] | None,
    cleanups: Cleanups,
    is_pending: bool,  # noqa: FBT001 - a fact of the group
) -> tuple[str, str | None]:
    if tombstone is not None:
        return DEAD, None
    if group is None:
        return GONE, NO_TOMBSTONE
    if not group["complete"]:
        return CANNOT_TELL, group["missing"]
    if group["member_count"]:
        return BY_MEMBERS, None
    if is_pending:
        return BY_TRANSACTION, None
    return _of_empty(removal, group, cleanups)


def _of_empty(
    removal: Mapping[str, Any], group: Mapping[str, Any], cleanups: Cleanups
) -> tuple[str, str | None]:
    """Judge a group without members and offsets that no tombstone ended."""
    times = [_ms(removal["removed_at"]), _ms(group["state_timestamp"])]
    if group["group_type"] != CLASSIC or None in times:
        return CANNOT_TELL, NOT_SINCE
    if not cleanups.has_been(max(each for each in times if each is not None)):
        return UNDER_WAY, None
    return (CANNOT_TELL, NO_INTERVAL) if cleanups.is_assumed else (STILL_THERE, None)


def _ms(time: Any) -> int | None:  # noqa: ANN401 - a cell
    return None if time is None else round(time.timestamp() * 1000)


def group_tombstones(decoded: Iterable[pa.Table]) -> pa.Table:
    """Return the tombstones of groups among decoded records.

    Args:
        decoded: Tables with `partition`, `offset`, `timestamp`, `is_tombstone`, and a `key` whose
            only field names the group.
    """
    parts = []
    for rows in decoded:
        gone = rows.filter(rows["is_tombstone"]) if rows.num_rows else rows
        if gone.num_rows:
            (ids,) = gone["key"].combine_chunks().flatten()
            parts.append(
                pa.table(
                    {
                        "group_id": ids.cast(pa.string()),
                        "coordinator_partition": gone["partition"].cast(pa.int32()),
                        "offset": gone["offset"].cast(pa.int64()),
                        "timestamp": pc.cast(gone["timestamp"], pa.timestamp("us", "UTC")),
                    }
                )
            )
    schema = pa.schema(
        [
            ("group_id", pa.string()),
            ("coordinator_partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
        ]
    )
    return pa.concat_tables([schema.empty_table(), *parts])
