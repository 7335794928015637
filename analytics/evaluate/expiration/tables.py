"""The tables about expiry: what each is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from analytics.evaluate.expiration.observed_history import ObservedHistory
from analytics.evaluate.expiration.offset_expiration import offset_expiration
from analytics.evaluate.expiration.offset_log import OffsetLog, offset_log
from analytics.evaluate.expiration.offset_removals import offset_removals
from analytics.evaluate.expiration.retention import Retention
from analytics.evaluate.expiration.retention_what_if import retention_what_if
from analytics.replay.graph import Step
from analytics.replay.history.coordinator_starts import coordinator_starts
from analytics.replay.history.topic_absence import topics_present
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.coverage import Coverage
from analytics.replay.log.rules import ReplayRules
from schemas.expiration_rules import AuditRules, ExpirationRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog


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


def _log(cut: Decoded, rules: ReplayRules, asked: ExpirationQuestion) -> OffsetLog:
    return offset_log(cut, rules, asked.era, asked.before)


def _instants(cut: Decoded, asked: ExpirationQuestion) -> Mapping[int, int]:
    """Return the instant of partitions that are cut at an offset, in epoch milliseconds."""
    if not asked.cut_partitions:
        return {}
    times = cut["offset_commit"].select("partition", "timestamp")
    times = times.unionByName(cut["group_metadata"].select("partition", "timestamp"))
    last = (
        times.where(F.col("partition").isin(*asked.cut_partitions))
        .groupBy("partition")
        .agg(F.unix_millis(F.max("timestamp")).alias("last_ms"))
        .where("last_ms is not null")
    )
    return {row.partition: min(row.last_ms, asked.as_of_ms) for row in last.collect()}


def _expiration(
    committed: DataFrame,
    groups: DataFrame,
    log: OffsetLog,
    instants: Mapping[int, int],
    asked: ExpirationQuestion,
) -> DataFrame:
    ends = None
    if asked.ends:
        ends = committed.sparkSession.createDataFrame(
            list(asked.ends),
            "topic string, partition int, log_start_offset bigint, log_end_offset bigint",
        )
    return offset_expiration(
        committed,
        log,
        asked.retention,
        asked.as_of_ms,
        groups=groups,
        instants=instants,
        ends=ends,
    ).localCheckpoint()


def _removals(
    topics: DataFrame,
    log: OffsetLog,
    metadata: MetadataLog,
    coverage: Coverage,
    asked: ExpirationQuestion,
) -> DataFrame:
    return offset_removals(
        log,
        topics,
        asked.retention,
        asked.as_of_ms,
        audit=asked.audit,
        present=topics_present(topics.sparkSession, coverage),
        starts=coordinator_starts(metadata, topics),
        coverage=coverage,
    ).localCheckpoint()


def _observed(
    instants: Mapping[int, int], coverage: Coverage, asked: ExpirationQuestion
) -> ObservedHistory:
    return ObservedHistory(asked.as_of_ms, instants, asked.complete_from, coverage)


def _what_if(
    expiration: DataFrame,
    removals: DataFrame,
    groups: DataFrame,
    log: OffsetLog,
    observed: ObservedHistory,
    asked: ExpirationQuestion,
) -> DataFrame:
    return retention_what_if(
        expiration,
        removals,
        groups,
        log,
        observed,
        retention=asked.retention,
        minutes=asked.minutes,
    )


_ASKED = "expiration_question"
EXPIRATION = (
    Step("offset_log", _log, ("cut", "rules", _ASKED)),
    Step("expiration_instants", _instants, ("cut", _ASKED)),
    Step(
        "offset_expiration",
        _expiration,
        ("committed_offsets", "groups", "offset_log", "expiration_instants", _ASKED),
    ),
    Step("offset_removals", _removals, ("topics", "offset_log", "metadata", "coverage", _ASKED)),
    Step("observed_history", _observed, ("expiration_instants", "coverage", _ASKED)),
    Step(
        "retention_what_if",
        _what_if,
        (
            *("offset_expiration", "offset_removals", "groups", "offset_log", "observed_history"),
            _ASKED,
        ),
    ),
)
"""Of the state tables, decoded tables cut at the instant (`cut`), `rules` and the question."""
