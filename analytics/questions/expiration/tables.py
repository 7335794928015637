"""The tables about expiry, made of the records of whole groups, one lot after the other.

What was removed is judged with small sums over all groups, and what retentions would have cost,
and how groups ended, rests on that: of groups that lost offsets what that takes is kept until then,
of all others it is told at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
from polars import selectors

from analytics.contracts import in_contract_order, polars_rows, table_of_frame
from analytics.engine.part_runs import GroupPart, PartAnswer, PartRunner, get_value, put_value
from analytics.gaps.group_selection import Chosen
from analytics.questions.expiration.group_endings import (
    OF_GROUPS,
    WORST_FIRST,
    Cleanups,
    GroupsAtEnd,
    endings,
    group_tombstones,
    groups_at_end,
)
from analytics.questions.expiration.offset_expiration import (
    BLOCKED,
    FATE,
    all_fates,
    all_notes,
    fates,
    in_fate_order,
    notes,
    offset_expiration,
    worst_of,
)
from analytics.questions.expiration.offset_log import (
    GroupRecords,
    ObservedHistory,
    OffsetLog,
    offset_log,
    shown_since,
    shown_since_in_all,
)
from analytics.questions.expiration.offset_removals import (
    Cluster,
    Removing,
    offset_removals,
    removed_of,
    removed_with,
    removing,
    together,
)
from analytics.questions.expiration.retention_settings import Retention
from analytics.questions.expiration.retention_what_if import (
    offsets_now,
    retention_costs,
    retention_what_if,
)
from analytics.replay.offsets.commit_rows import GROUP, TOPIC
from analytics.replay.removals.removal_causes import EXPIRATION
from analytics.tables.parted_table import Order, PartedTable
from schemas import table
from schemas.expiration_rules import AuditRules, ExpirationRules

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules

FATES, NOTES, ENDINGS = "fates", "notes", "group_endings"
COMMITS, MARKERS, COMMITTED, STATE = "commits", "markers", "committed", "state_of_groups"
PENDING: Final = "pending"
_OF_LOTS: Final = (COMMITS, MARKERS, COMMITTED, STATE, PENDING)

_HOME: Final = "coordinator_partition"
_COLUMNS: Final = [each.name for each in table("offset_expiration").columns]
_OF_REMOVALS: Final = (_HOME, "record_offset", "cause")
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
        chosen: Whose rows are answered with; those of others are evidence.
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
    chosen: Chosen = field(default_factory=Chosen)

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
        cluster: Topics, and where the logs' edges are.
        starts: Of `coordinator_starts`.
        replay: How the release replays.
        instants: Of `instants_of`: the instant of partitions that are cut at an offset.
    """

    cluster: Cluster
    starts: pl.DataFrame
    replay: ReplayRules
    instants: Mapping[int, int] = field(default_factory=dict)


class GroupLot(NamedTuple):
    """What is known of some whole groups.

    Attributes:
        records: Theirs.
        committed: Rows of the state table `committed_offsets`, as `offset_expiration` takes it.
        groups: Rows of the state table `groups`, theirs at least: `OF_GROUPS`.
        pending: `group_id` of rows of `pending_offsets`, theirs at least.
    """

    records: GroupRecords
    committed: pl.DataFrame
    groups: pl.DataFrame
    pending: pl.DataFrame

    @classmethod
    def of(cls, rows: Mapping[str, pl.DataFrame]) -> GroupLot:
        """Return the lot of rows by name, as `rows` has them."""
        decoded = {name: each for name, each in rows.items() if name not in _OF_LOTS}
        commits, markers, *others = (rows[name] for name in _OF_LOTS)
        return cls(GroupRecords(commits, markers, decoded), *others)

    @property
    def rows(self) -> dict[str, pl.DataFrame]:
        """The rows by name."""
        records = self.records
        named = (records.commits, records.markers, self.committed, self.groups, self.pending)
        return {**records.decoded, **dict(zip(_OF_LOTS, named, strict=True))}


class ExpirationTables(NamedTuple):
    """What is answered.

    Attributes:
        tables: `offset_expiration`, `offset_removals`, `retention_what_if`, `group_endings`, and
            `FATES`: of `all_fates`.
        notes: Of `all_notes`.
    """

    tables: Mapping[str, PartedTable]
    notes: pl.DataFrame


def expiration_tables(
    question: ExpirationQuestion,
    facts: ReplayedFacts,
    lots: Sequence[GroupPart],
    runner: PartRunner,
    *,
    most: int | None = None,
    are_apart: bool = True,
) -> ExpirationTables:
    """Return which offsets expire when, what was removed, and what retentions would have cost.

    Args:
        question: The question.
        facts: At the instant.
        lots: Each gives the rows of a `GroupLot`; at least one lot, possibly without rows. Where
            commits carry no time, a lot has all groups of its partitions.
        runner: Where lots are evaluated.
        most: So many rows of `offset_expiration`, the worst; None is all of them.
        are_apart: No group is in two lots. Else what is told of a group is put together here.
    """
    observed = ObservedHistory(
        question.as_of_ms, facts.instants, question.complete_from, facts.cluster.coverage
    )
    folder = runner.folder if len(lots) > 1 else None
    evaluate = partial(_evaluated, facts, question, observed, most, folder)
    first = runner.run(evaluate, lots)
    sums: Sequence[_LotSums] = first.sums
    known = _KnownOfAll(
        together([each.removing for each in sums]),
        shown_since_in_all([each.since for each in sums]),
    )
    left = [each.left for each in sums]
    late = partial(_late_tables, facts, question, observed, known)
    parts = [GroupPart(partial(_left_of, left))]
    if are_apart:
        parts = [
            GroupPart(partial(_left_of, [each]), lot.groups)
            for each, lot in zip(left, lots, strict=True)
        ]
    orders = {FATES: Order(FATE, in_fate_order), ENDINGS: WORST_FIRST}
    second = runner.run(late, parts, orders)
    every = first.tables["offset_expiration"]
    if most is not None:
        worst = worst_of(polars_rows(every.whole()), most)
        ordered = in_contract_order("offset_expiration", worst)
        every = PartedTable.held(table_of_frame("offset_expiration", ordered))
    found = {"offset_expiration": every, **second.tables}
    return ExpirationTables(found, all_notes([each.notes for each in sums]))


def _what_if_in_order(what_if: pl.DataFrame) -> pl.DataFrame:
    key = table("retention_what_if").key
    ordered = in_contract_order("retention_what_if", what_if)
    is_twice = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in key)
    if ordered.select(is_twice.slice(1).any()).item():
        # A group may lie in two partitions of the topic: then all of a row decides.
        return in_contract_order("retention_what_if", what_if.sort(what_if.columns))
    return ordered


class _Left(NamedTuple):
    """What is left of some groups until it is known why offsets were removed.

    Attributes:
        blocked: Rows of `offset_expiration` that are blocked.
        now: Of `offsets_now`.
        fates: Of `fates`.
        times: Of `ObservedHistory.group_times`.
        costs: Of `retention_costs`, of groups that lost no offset.
        groups: The state table `groups`.
        removed: Of `removed_of`.
        at_end: How those that lost offsets ended rests on this and on why they lost them.
        with_removals: The log of these groups: what it cost rests on that, too.
    """

    blocked: pl.DataFrame
    now: pl.DataFrame
    fates: pl.DataFrame
    times: pl.DataFrame
    costs: pl.DataFrame
    groups: pl.DataFrame
    removed: pl.DataFrame
    at_end: GroupsAtEnd
    with_removals: OffsetLog | None


class _LotSums(NamedTuple):
    """What is put together of all groups.

    Attributes:
        notes: Of `notes`.
        removing: What the judgement of removals takes of these groups.
        since: Of `shown_since`.
        left: What is left of these groups, or where it was written.
    """

    notes: pl.DataFrame
    removing: Removing
    since: pl.DataFrame
    left: _Left | str


class _KnownOfAll(NamedTuple):
    """What the second look at groups takes of all of them.

    Attributes:
        removing: Of `together`.
        since: Of `shown_since`.
    """

    removing: Removing
    since: pl.DataFrame


def _evaluated(
    facts: ReplayedFacts,
    question: ExpirationQuestion,
    observed: ObservedHistory,
    most: int | None,
    folder: str | None,
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    """Return what is told of a lot by itself, and keep what its removals are needed for.

    Args:
        facts: At the instant.
        question: The question.
        observed: From where on history is whole.
        most: So many rows of `offset_expiration`.
        folder: Where what is kept is written; None holds it.
        rows: Of a `GroupLot`.
    """
    records, committed, groups, pending = GroupLot.of(rows)
    log = offset_log(records, facts.replay, question.era, question.before, by_numbers=True)
    del records
    found = offset_expiration(
        committed,
        log,
        question.retention,
        question.as_of_ms,
        groups=groups,
        instants=observed.instants,
        ends=question.log_ends,
    ).select(_COLUMNS)
    every_removal = _own(removed_of(log))
    every_time = _own(observed.group_times(log.records.commits))
    chosen = question.chosen
    gone, times = chosen.groups(every_removal), chosen.groups(every_time)
    at_end = _at_end(gone, found, pending, groups, log)
    found, groups = chosen.offsets(found), chosen.groups(groups)
    names = chosen.offsets(log.names)
    has_lost = pl.col(GROUP).is_in(log.removed_offsets[GROUP].unique().implode())

    def of_chosen(rows: pl.DataFrame) -> pl.DataFrame:
        if names.height == log.names.height:
            return rows
        numbers = (each for each in (GROUP, TOPIC) if each in rows.columns)
        is_chosen = (pl.col(n).is_null() | pl.col(n).is_in(names[n].implode()) for n in numbers)
        return rows.filter(*is_chosen)

    def without(rows: pl.DataFrame) -> pl.DataFrame:
        return of_chosen(rows).filter(~has_lost)

    def with_removals(rows: pl.DataFrame) -> pl.DataFrame:
        return _own(of_chosen(rows).filter(has_lost))

    left = _Left(
        _own(found.filter(pl.col("status") == BLOCKED)),
        _own(offsets_now(found)),
        _own(fates(found)),
        times,
        _own(_costs(log.with_some(without), found, _NOTHING_REMOVED, observed, question)),
        groups,
        gone,
        at_end,
        log.with_some(with_removals) if gone.height else None,
    )
    sums = _LotSums(
        _own(notes(found)),
        removing(log.records, every_removal, facts.starts, facts.cluster.topics),
        shown_since(every_time),
        left if folder is None else put_value(folder, left),
    )
    worst = in_contract_order("offset_expiration", _own(worst_of(found, most)))
    return PartAnswer({"offset_expiration": worst}, sums)


def _at_end(
    removed: pl.DataFrame,
    expiration: pl.DataFrame,
    pending: pl.DataFrame,
    groups: pl.DataFrame,
    log: OffsetLog,
) -> GroupsAtEnd:
    """Return what is known at the instant of groups that lost offsets."""
    lost = removed.select(pl.col("group_id").cast(pl.String)).unique()
    named = expiration.select(pl.col("group_id").cast(pl.String)).unique()
    rows_of_all = (
        named,
        pending.select("group_id"),
        groups.select(OF_GROUPS),
        group_tombstones(log.records.decoded),
    )
    return GroupsAtEnd(*(_own(rows.join(lost, on="group_id", how="semi")) for rows in rows_of_all))


def _left_of(lots: Sequence[_Left | str]) -> Any:  # noqa: ANN401 - the same, whatever parts are of
    """Return what is left of some lots."""
    return [get_value(each) if isinstance(each, str) else each for each in lots]


def _late_tables(
    facts: ReplayedFacts,
    question: ExpirationQuestion,
    observed: ObservedHistory,
    evidence: _KnownOfAll,
    lots: Sequence[_Left],
) -> PartAnswer:
    """Return what rests on why offsets were removed, and `FATES`, of the groups of some lots.

    Args:
        facts: At the instant.
        question: The question.
        observed: From where on history is whole.
        evidence: Of all groups.
        lots: What is left of them; of groups that are in several, all of these.
    """
    removed = removed_with(
        pl.concat([each.removed for each in lots]), evidence.removing, facts.starts
    )
    removals = in_contract_order(
        "offset_removals",
        offset_removals(
            removed,
            facts.cluster,
            question.retention,
            question.as_of_ms,
            rules=(facts.replay, question.era, question.before),
            audit=question.audit,
        ),
    )
    expired = removals.filter(pl.col("cause") == EXPIRATION).select(_OF_REMOVALS)
    costs = [each.costs for each in lots]
    costs += [
        _costs(each.with_removals, each.blocked, expired, observed, question)
        for each in lots
        if each.with_removals is not None
    ]
    what_if = retention_what_if(
        pl.concat([each.now for each in lots]),
        pl.concat(costs),
        observed.periods(pl.concat([each.times for each in lots]), evidence.since),
        pl.concat([each.groups for each in lots]).unique("group_id", keep="first"),
        replay=facts.replay,
        minutes=question.minutes,
    )
    cleanups = Cleanups.of(question.retention, question.audit, question.as_of_ms)
    ended = endings(removals, groups_at_end([each.at_end for each in lots]), cleanups)
    asked = question.chosen.offsets(removals)
    tables = {
        "offset_removals": asked,
        "retention_what_if": _what_if_in_order(what_if),
        ENDINGS: ended.join(asked, on="group_id", how="semi", maintain_order="left"),
        FATES: all_fates([each.fates for each in lots]),
    }
    return PartAnswer(tables)


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
