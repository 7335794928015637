"""The tables about expiry, made of the records of whole partitions, one lot after the other.

What was removed is judged over all partitions, and what retentions would have cost rests on that:
of groups that lost offsets what that takes is kept until then, of all others it is told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from analytics.evaluate.contract_columns import in_key_order
from analytics.evaluate.expiration.fates import all_fates, all_notes, fates, notes, worst_of
from analytics.evaluate.expiration.observed_history import ObservedHistory
from analytics.evaluate.expiration.offset_expiration import BLOCKED, offset_expiration
from analytics.evaluate.expiration.offset_log import GroupRecords, OffsetLog, offset_log
from analytics.evaluate.expiration.offset_removals import (
    Cluster,
    Removed,
    offset_removals,
    removed_here,
    removed_of,
    together,
)
from analytics.evaluate.expiration.retention import Retention
from analytics.evaluate.expiration.retention_what_if import (
    offsets_now,
    retention_costs,
    retention_what_if,
)
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.spans.intervals import TIME
from schemas import table
from schemas.expiration_rules import AuditRules, ExpirationRules

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules

FATES, NOTES = "fates", "notes"

AT_ONCE: Final = 250_000
"""So many records of a lot are looked at together, always all of a group."""

_THREADS: Final = 2
"""Much of a slice is work of one core."""

_HOME: Final = "coordinator_partition"
_COLUMNS: Final = [each.name for each in table("offset_expiration").columns]
_NOTHING_REMOVED: Final = pl.DataFrame(
    schema={_HOME: pl.Int32(), "record_offset": pl.Int64(), "cause": pl.String()}
)


class LogEnds(NamedTuple):
    """Where the log of a data partition starts and ends."""

    topic: str
    partition: int
    log_start_offset: int | None
    log_end_offset: int | None


@dataclass(frozen=True)
class ExpirationQuestion:
    """What is asked, and what the records do not say.

    Attributes:
        era: By which offsets expire.
        before: The era of what a release before an upgrade wrote; None where all is of one era.
        retention: Of the coordinators.
        minutes: The retentions to try.
        audit: How removals are judged.
        as_of_ms: The instant, in epoch milliseconds.
        cut_partitions: Partitions of `__consumer_offsets` whose instant is an offset: there it is
            the time of the last record before that.
        complete_from: By partition of `__consumer_offsets`, the offset from which on no record was
            compacted away or is missing, where that is not its beginning.
        ends: Where logs of data partitions start and end.
    """

    era: ExpirationRules
    before: ExpirationRules | None
    retention: Retention
    minutes: Sequence[int]
    audit: AuditRules
    as_of_ms: int
    cut_partitions: frozenset[int] = frozenset()
    complete_from: Mapping[int, int] = field(default_factory=dict)
    ends: Sequence[LogEnds] = ()


_ENDS: Final = {
    "topic": pl.String(),
    "partition": pl.Int32(),
    "log_start_offset": pl.Int64(),
    "log_end_offset": pl.Int64(),
}


@dataclass(frozen=True)
class Known:
    """What a replay knows at the instant.

    Attributes:
        committed: The state table `committed_offsets`, as `offset_expiration` takes it.
        groups: The state table `groups`.
        cluster: Topics, and where the logs' edges are.
        starts: Of `coordinator_starts`.
        replay: How the release replays.
    """

    committed: pl.DataFrame
    groups: pl.DataFrame
    cluster: Cluster
    starts: pl.DataFrame
    replay: ReplayRules


def expiration_tables(
    asked: ExpirationQuestion,
    known: Known,
    records: Iterable[GroupRecords],
    most: int | None = None,
) -> dict[str, pl.DataFrame]:
    """Return `offset_expiration`, `offset_removals` and `retention_what_if`, each in order.

    Args:
        asked: The question.
        known: At the instant.
        records: Of whole partitions; at least one lot, possibly without rows.
        most: So many rows of `offset_expiration`, the worst; None is all of them.

    Returns:
        Beside the tables, of all their offsets, `FATES` (of `all_fates`) and `NOTES` (of
        `all_notes`).
    """
    # The records of a lot are let go before those of the next are read.
    lots = list(map(partial(_lot, known=known, asked=asked, most=most), records))
    slices = [each for lot in lots for each in lot.slices]
    worst = worst_of(pl.concat([each.expiration for each in slices]), most)
    removals = offset_removals(
        together([each.removed for each in lots]),
        known.cluster,
        asked.retention,
        asked.as_of_ms,
        rules=(known.replay, asked.era, asked.before),
        audit=asked.audit,
    )
    removals = in_key_order("offset_removals", removals)
    costs = [each.costs for each in slices]
    costs += [
        _costs(each.with_removals, each.blocked, removals, lot.observed, asked)
        for lot in lots
        for each in lot.slices
        if each.with_removals is not None
    ]
    what_if = retention_what_if(
        pl.concat([each.now for each in slices]),
        pl.concat(costs),
        pl.concat([each.periods for each in lots]),
        known.groups,
        replay=known.replay,
        minutes=asked.minutes,
    )
    return {
        "offset_expiration": in_key_order("offset_expiration", worst),
        "offset_removals": removals,
        # A group may lie in two partitions of the topic: then all of a row decides.
        "retention_what_if": in_key_order("retention_what_if", what_if.sort(what_if.columns)),
        FATES: all_fates([each.fates for each in slices]),
        NOTES: all_notes([each.notes for each in slices]),
    }


class _Slice(NamedTuple):
    """What is kept of the records of some groups.

    Attributes:
        expiration: Rows of `offset_expiration`, no more than are wanted.
        blocked: Those rows that are blocked, all of them.
        now: Of `offsets_now`.
        fates: Of `fates`.
        notes: Of `notes`.
        removed: Of `removed_of`.
        costs: Of `retention_costs`, of groups that lost no offset.
        with_removals: The log of the others: what it cost rests on why they lost them.
    """

    expiration: pl.DataFrame
    blocked: pl.DataFrame
    now: pl.DataFrame
    fates: pl.DataFrame
    notes: pl.DataFrame
    removed: pl.DataFrame
    costs: pl.DataFrame
    with_removals: OffsetLog | None


class _Lot(NamedTuple):
    """What is kept of the records of some partitions.

    Attributes:
        slices: By some groups.
        removed: What was removed.
        periods: Of `ObservedHistory.periods`.
        observed: What bounds the history.
    """

    slices: Sequence[_Slice]
    removed: Removed
    periods: pl.DataFrame
    observed: ObservedHistory


def _lot(records: GroupRecords, known: Known, asked: ExpirationQuestion, most: int | None) -> _Lot:
    observed = _observed(_instants(records, asked), known, asked)
    homes = records.commits.select(_HOME).unique()
    committed = known.committed.join(homes, on=_HOME, how="semi")
    ends = None
    if asked.ends:
        ends = pl.DataFrame(list(asked.ends), schema=_ENDS, orient="row")

    def sliced(give: Callable[[], GroupRecords]) -> _Slice:
        log = offset_log(give(), known.replay, asked.era, asked.before)
        found = offset_expiration(
            committed,
            log,
            asked.retention,
            asked.as_of_ms,
            groups=known.groups,
            instants=observed.instants,
            ends=ends,
        ).select(_COLUMNS)
        gone = removed_of(log)
        lost = gone.select(GROUP_KEY).unique()
        others = log.of(lost, are_they=False)
        return _Slice(
            worst_of(found, most),
            found.filter(pl.col("status") == BLOCKED),
            offsets_now(found),
            fates(found),
            notes(found),
            gone,
            _costs(others, found, _NOTHING_REMOVED, observed, asked),
            log.of(lost, are_they=True) if lost.height else None,
        )

    with ThreadPoolExecutor(_THREADS) as threads:
        slices = list(threads.map(sliced, records.sliced(AT_ONCE)))
    return _Lot(
        slices,
        removed_here(records, pl.concat([each.removed for each in slices]), known.starts),
        observed.periods(records.commits),
        observed,
    )


def _costs(
    log: OffsetLog,
    expiration: pl.DataFrame,
    removals: pl.DataFrame,
    observed: ObservedHistory,
    asked: ExpirationQuestion,
) -> pl.DataFrame:
    return retention_costs(
        log, expiration, removals, observed, retention=asked.retention, minutes=asked.minutes
    )


def _observed(
    instants: Mapping[int, int], known: Known, asked: ExpirationQuestion
) -> ObservedHistory:
    return ObservedHistory(asked.as_of_ms, instants, asked.complete_from, known.cluster.coverage)


def _instants(records: GroupRecords, asked: ExpirationQuestion) -> dict[int, int]:
    """Return the instant of partitions that are cut at an offset, in epoch milliseconds."""
    if not asked.cut_partitions:
        return {}
    groups = records.decoded["group_metadata"].select(
        pl.col("partition").alias(_HOME), pl.col("timestamp").cast(TIME).alias("at")
    )
    times = pl.concat([records.commits.select(_HOME, pl.col("committed_at").alias("at")), groups])
    last = (
        times.filter(pl.col(_HOME).is_in(sorted(asked.cut_partitions)))
        .group_by(_HOME)
        .agg(pl.col("at").max().dt.epoch("ms"))
        .drop_nulls()
    )
    return {number: min(at, asked.as_of_ms) for number, at in last.iter_rows()}
