"""The tables about expiry, made of the records of whole groups, one lot after the other.

What was removed is judged over all groups, and what retentions would have cost rests on that: of
groups that lost offsets what that takes is kept until then, of all others it is told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
from polars import selectors

from analytics.contracts import in_contract_order
from analytics.questions.expiration.fates import all_fates, all_notes, fates, notes, worst_of
from analytics.questions.expiration.observed_history import ObservedHistory
from analytics.questions.expiration.offset_expiration import BLOCKED, offset_expiration
from analytics.questions.expiration.offset_log import GroupRecords, OffsetLog, offset_log
from analytics.questions.expiration.offset_removals import (
    Cluster,
    Removed,
    offset_removals,
    removed_here,
    removed_of,
    together,
)
from analytics.questions.expiration.retention import Retention
from analytics.questions.expiration.retention_what_if import (
    offsets_now,
    retention_costs,
    retention_what_if,
)
from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.offsets.commit_places import GROUP
from schemas import table
from schemas.expiration_rules import AuditRules, ExpirationRules

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules

FATES, NOTES = "fates", "notes"

_THREADS: Final = 2
"""Much of a lot is work of one core."""

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
        cut_partitions: Partitions of `__consumer_offsets` whose instant is an offset.
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

    @cached_property
    def log_ends(self) -> pl.DataFrame | None:
        """The same as a frame, made once for all lots; None where none is known."""
        return pl.DataFrame(list(self.ends), schema=_ENDS, orient="row") if self.ends else None


_ENDS: Final = {
    "topic": pl.String(),
    "partition": pl.Int32(),
    "log_start_offset": pl.Int64(),
    "log_end_offset": pl.Int64(),
}


@dataclass(frozen=True)
class ReplayedFacts:
    """What a replay knows at the instant.

    Attributes:
        groups: The state table `groups`.
        cluster: Topics, and where the logs' edges are.
        starts: Of `coordinator_starts`.
        replay: How the release replays.
        instants: Of `instants_of`: the instant of partitions that are cut at an offset.
    """

    groups: pl.DataFrame
    cluster: Cluster
    starts: pl.DataFrame
    replay: ReplayRules
    instants: Mapping[int, int] = field(default_factory=dict)


class GroupLot(NamedTuple):
    """What is known of some whole groups.

    Attributes:
        records: Theirs.
        committed: Rows of the state table `committed_offsets`, as `offset_expiration` takes it.
    """

    records: GroupRecords
    committed: pl.DataFrame


def expiration_tables(
    question: ExpirationQuestion,
    facts: ReplayedFacts,
    lots: Iterable[Callable[[], GroupLot]],
    most: int | None = None,
) -> dict[str, pl.DataFrame]:
    """Return `offset_expiration`, `offset_removals` and `retention_what_if`, each in order.

    Args:
        question: The question.
        facts: At the instant.
        lots: Each gives some whole groups; at least one lot, possibly without rows. Where commits
            carry no time, a lot has all groups of its partitions.
        most: So many rows of `offset_expiration`, the worst; None is all of them.

    Returns:
        Beside the tables, of all their offsets, `FATES` (of `all_fates`) and `NOTES` (of
        `all_notes`).
    """
    observed = ObservedHistory(
        question.as_of_ms, facts.instants, question.complete_from, facts.cluster.coverage
    )
    evaluate = partial(_evaluated, facts=facts, question=question, observed=observed, most=most)
    # The records of a lot are let go before those of the next are read.
    with ThreadPoolExecutor(_THREADS) as threads:
        found = list(threads.map(evaluate, lots))
    worst = worst_of(pl.concat([each.expiration for each in found]), most)
    removals = offset_removals(
        together([each.removed for each in found], facts.starts),
        facts.cluster,
        question.retention,
        question.as_of_ms,
        rules=(facts.replay, question.era, question.before),
        audit=question.audit,
    )
    removals = in_contract_order("offset_removals", removals)

    def costs(of: _Evaluation) -> pl.DataFrame:
        if of.with_removals is None:
            return of.costs
        late = _costs(of.with_removals, of.blocked, removals, observed, question)
        return pl.concat([of.costs, late])

    with ThreadPoolExecutor(_THREADS) as threads:
        every = pl.concat(threads.map(costs, found))
    what_if = retention_what_if(
        pl.concat([each.now for each in found]),
        every,
        observed.periods(pl.concat([each.times for each in found])),
        facts.groups,
        replay=facts.replay,
        minutes=question.minutes,
    )
    return {
        "offset_expiration": in_contract_order("offset_expiration", worst),
        "offset_removals": removals,
        "retention_what_if": _what_if_in_order(what_if),
        FATES: all_fates([each.fates for each in found]),
        NOTES: all_notes([each.notes for each in found]),
    }


def _what_if_in_order(what_if: pl.DataFrame) -> pl.DataFrame:
    key = table("retention_what_if").key
    ordered = in_contract_order("retention_what_if", what_if)
    is_twice = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in key)
    if ordered.select(is_twice.slice(1).any()).item():
        # A group may lie in two partitions of the topic: then all of a row decides.
        return in_contract_order("retention_what_if", what_if.sort(what_if.columns))
    return ordered


class _Evaluation(NamedTuple):
    """What is kept of some groups.

    Attributes:
        expiration: Rows of `offset_expiration`, no more than are wanted.
        blocked: Those rows that are blocked, all of them.
        now: Of `offsets_now`.
        fates: Of `fates`.
        notes: Of `notes`.
        removed: What was removed.
        times: Of `ObservedHistory.group_times`.
        costs: Of `retention_costs`, of groups that lost no offset.
        with_removals: The log of the others: what it cost rests on why they lost them.
    """

    expiration: pl.DataFrame
    blocked: pl.DataFrame
    now: pl.DataFrame
    fates: pl.DataFrame
    notes: pl.DataFrame
    removed: Removed
    times: pl.DataFrame
    costs: pl.DataFrame
    with_removals: OffsetLog | None


def _evaluated(
    give: Callable[[], GroupLot],
    facts: ReplayedFacts,
    question: ExpirationQuestion,
    observed: ObservedHistory,
    most: int | None,
) -> _Evaluation:
    records, committed = give()
    log = offset_log(records, facts.replay, question.era, question.before, by_numbers=True)
    del records
    found = offset_expiration(
        committed,
        log,
        question.retention,
        question.as_of_ms,
        groups=facts.groups,
        instants=observed.instants,
        ends=question.log_ends,
    ).select(_COLUMNS)
    gone = removed_of(log)
    removed = removed_here(log.records, gone, facts.starts)
    has_lost = pl.col(GROUP).is_in(log.removed_offsets[GROUP].unique().implode())

    def without(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.filter(~has_lost)

    def with_removals(rows: pl.DataFrame) -> pl.DataFrame:
        return _own(rows.filter(has_lost))

    return _Evaluation(
        _own(worst_of(found, most)),
        _own(found.filter(pl.col("status") == BLOCKED)),
        _own(offsets_now(found)),
        _own(fates(found)),
        _own(notes(found)),
        replace(removed, rows=_own(removed.rows)),
        _own(observed.group_times(log.records.commits)),
        _own(_costs(log.with_some(without), found, _NOTHING_REMOVED, observed, question)),
        log.with_some(with_removals) if gone.height else None,
    )


def _own(rows: pl.DataFrame) -> pl.DataFrame:
    """Copy the texts of rows that are kept: they would keep all that was read with them."""
    named = rows.with_columns(selectors.enum().cast(pl.String))
    return polars_rows(named.to_arrow(compat_level=pl.CompatLevel.oldest()))


def _costs(
    log: OffsetLog,
    expiration: pl.DataFrame,
    removals: pl.DataFrame,
    observed: ObservedHistory,
    question: ExpirationQuestion,
) -> pl.DataFrame:
    return retention_costs(
        log, expiration, removals, observed, retention=question.retention, minutes=question.minutes
    )
