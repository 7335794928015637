"""The tables about expiry, made of logs of whole partitions, one after the other.

Two passes: what was removed is judged over all partitions, and what retentions would have cost
rests on that. So logs are asked for twice; who holds them all hands over the same ones again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from analytics.evaluate.contract_table import in_key_order
from analytics.evaluate.expiration.observed_history import ObservedHistory
from analytics.evaluate.expiration.offset_expiration import offset_expiration
from analytics.evaluate.expiration.offset_log import GroupRecords, OffsetLog, offset_log
from analytics.evaluate.expiration.offset_removals import (
    Cluster,
    Removed,
    offset_removals,
    removed_here,
    together,
)
from analytics.evaluate.expiration.retention import Retention
from analytics.evaluate.expiration.retention_what_if import retention_costs, retention_what_if
from analytics.replay.spans.intervals import TIME
from schemas import table
from schemas.expiration_rules import AuditRules, ExpirationRules

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules

_HOME: Final = "coordinator_partition"


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
        committed: The state table `committed_offsets`.
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
    asked: ExpirationQuestion, known: Known, records: Callable[[], Iterable[GroupRecords]]
) -> dict[str, pl.DataFrame]:
    """Return `offset_expiration`, `offset_removals` and `retention_what_if`, each in order.

    Args:
        asked: The question.
        known: At the instant.
        records: Yields the records of whole partitions; at least one lot, possibly without rows.
    """
    lots: list[_Lot] = []
    held: list[OffsetLog] = []
    for each in records():
        held = [_log(each, known, asked)]
        lots.append(_lot(held[0], known, asked))
    expiration = in_key_order("offset_expiration", pl.concat([each.expiration for each in lots]))
    removals = offset_removals(
        together([each.removed for each in lots]),
        known.cluster,
        asked.retention,
        asked.as_of_ms,
        rules=(known.replay, asked.era, asked.before),
        audit=asked.audit,
    )
    removals = in_key_order("offset_removals", removals)
    instants = {number: at for each in lots for number, at in each.observed.instants.items()}
    observed = _observed(instants, known, asked)
    # A single lot is at hand still.
    logs = held if len(lots) == 1 else (_log(each, known, asked) for each in records())
    costs = [
        retention_costs(
            each, expiration, removals, observed, retention=asked.retention, minutes=asked.minutes
        )
        for each in logs
    ]
    what_if = retention_what_if(
        expiration,
        pl.concat(costs),
        pl.concat([each.periods for each in lots]),
        known.groups,
        replay=known.replay,
        minutes=asked.minutes,
    )
    return {
        "offset_expiration": expiration,
        "offset_removals": removals,
        "retention_what_if": in_key_order("retention_what_if", what_if),
    }


class _Lot(NamedTuple):
    """What is kept of the records of some partitions."""

    expiration: pl.DataFrame
    removed: Removed
    periods: pl.DataFrame
    observed: ObservedHistory


def _log(records: GroupRecords, known: Known, asked: ExpirationQuestion) -> OffsetLog:
    return offset_log(records, known.replay, asked.era, asked.before)


def _lot(log: OffsetLog, known: Known, asked: ExpirationQuestion) -> _Lot:
    homes = log.records.commits.select(_HOME).unique()
    observed = _observed(_instants(log.records, asked), known, asked)
    ends = None
    if asked.ends:
        ends = pl.DataFrame(list(asked.ends), schema=_ENDS, orient="row")
    expiration = offset_expiration(
        known.committed.join(homes, on=_HOME, how="semi"),
        log,
        asked.retention,
        asked.as_of_ms,
        groups=known.groups,
        instants=observed.instants,
        ends=ends,
    )
    columns = [each.name for each in table("offset_expiration").columns]
    removed = removed_here(log, known.starts)
    return _Lot(
        expiration.select(columns), removed, observed.periods(log.records.commits), observed
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
