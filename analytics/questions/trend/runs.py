"""Runs of audits: of which cluster and instant each is, and which two can be compared.

Runs of a cluster are in the order of their instants. Each is compared with the one before it, as
far as both were made of the same logs with the same filters: what one has and the other has not
was else left out, and is neither new nor gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol

from analytics.gaps.gap import Gap, gap

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.tables.parted_table import Order, PartedTable

_MOST_NAMED: Final = 3
_DAY: Final = timedelta(days=1)
_LEAST: Final = timedelta(minutes=1)
"""Runs that are closer give no rate: consumers commit every few seconds."""
TOO_CLOSE: Final = "both runs are less than a minute apart"


class RunTables(Protocol):
    """The tables of a run, wherever they are."""

    def has(self, *names: str) -> bool:
        """Return whether all of these tables are there."""

    def pieces(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of a table of any size, some rows at a time; at least one piece."""

    def parted(self, name: str, order: Order) -> PartedTable:
        """Return a table whose rows may be too many to be held."""

    def count(self, *names: str) -> int:
        """Return how many rows tables have together."""


@dataclass(frozen=True)
class AuditedRun:
    """A run of an audit that came to its end.

    Attributes:
        name: Where it is: a workspace, or a schema of tables and the run's id there.
        cluster: Of which cluster; None where nothing says so.
        as_of: Its instant; None where no record has a time.
        tables: What it found.
        logs: What its dump has: names of partitions of internal topics, and "logs of data topics";
            None where nothing tells.
        lacks: Partitions of internal topics of which records are missing.
        filters: Which groups, topics or partitions were chosen, as `groups=parcel-*`.
        whole_partitions: Partitions of the offsets topic that show all of their groups; None where
            nothing tells.
        shows_history: Whether every record ever written to the offsets topic is in the dump.
        is_redacted: Its names are pseudonyms.
        snapshot_copies: Copies that were fetched from a running cluster: each is of the leaders of
            its partitions, not of one broker, and named after its folder.
        keeps_cleaned: One of them went on from an earlier one (`snapshot --resume`): it has records
            that the cleaner has removed from the logs since. None where nothing tells.
        nodes: Node ids of brokers' copies, by name; those that are not known are not there.
        settings: A digest of the settings of Kafka that a person gave; None where nobody did.
        choices: How the dump was read and replayed where a person chose, as options of commands.
    """

    name: str
    cluster: str | None
    as_of: datetime | None
    tables: RunTables
    logs: frozenset[str] | None
    lacks: frozenset[str] = frozenset()
    filters: tuple[str, ...] = ()
    whole_partitions: frozenset[int] | None = None
    shows_history: bool = False
    is_redacted: bool = False
    snapshot_copies: frozenset[str] = frozenset()
    keeps_cleaned: bool | None = False
    nodes: Mapping[str, int] = field(default_factory=dict)
    settings: str | None = None
    choices: tuple[str, ...] = ()

    @property
    def instant(self) -> datetime:
        """Its instant, which a run that is compared has."""
        assert self.as_of is not None
        return self.as_of


@dataclass(frozen=True)
class Pair:
    """A run, and the one before it.

    Attributes:
        cluster: What both are of.
        run: The run.
        before: The one before it; None of the first one.
        difference: Why what one alone has is neither new nor gone; None where it is.
    """

    cluster: str
    run: AuditedRun
    before: AuditedRun | None
    difference: Gap | None = None

    @property
    def days(self) -> float | None:
        """How far both are apart; null where that is too close for a rate (`TOO_CLOSE`)."""
        assert self.before is not None
        apart = self.run.instant - self.before.instant
        return None if apart < _LEAST else apart / _DAY

    @property
    def comparable(self) -> AuditedRun | None:
        """The run before, where both can be compared."""
        return None if self.difference is not None else self.before


@dataclass(frozen=True)
class Runs:
    """Runs as they are compared.

    Attributes:
        pairs: By cluster and instant.
        gaps: What cannot be told of runs.
        left_out: Runs that are left out as others of the same instant are there, a sentence each.
    """

    pairs: tuple[Pair, ...]
    gaps: tuple[Gap, ...]
    left_out: tuple[str, ...]

    @property
    def last(self) -> tuple[Pair, ...]:
        """The last run of each cluster."""
        return tuple({each.cluster: each for each in self.pairs}.values())


def in_order(runs: Iterable[AuditedRun]) -> Runs:
    """Return runs by cluster, in the order of their instants, each once.

    Two of the same cluster and instant are one run, given twice or made with other settings: the
    first that has no filters counts, and no time is between them that anything could change in.
    """
    gaps: list[Gap] = []
    left_out: list[str] = []
    clusters: dict[str, dict[datetime, AuditedRun]] = {}
    for each in sorted(runs, key=lambda run: bool(run.filters)):
        if each.as_of is None:
            gaps.append(gap("trend_run_without_time", run=each.name))
            continue
        if each.cluster is None:
            gaps.append(gap("trend_of_no_cluster", run=each.name))
        of_cluster = clusters.setdefault(each.cluster or each.name, {})
        other = of_cluster.setdefault(each.as_of, each)
        if other is not each and other.name != each.name:
            left_out.append(
                f"{each.name} is left out: {other.name} is of the same cluster and instant"
            )
    pairs: list[Pair] = []
    for cluster in sorted(clusters):
        of_cluster = clusters[cluster]
        ordered = [of_cluster[instant] for instant in sorted(of_cluster)]
        if len(ordered) == 1 and ordered[0].cluster is not None:
            gaps.append(gap("trend_of_one_run", cluster=cluster))
        pairs.append(Pair(cluster, ordered[0], None))
        for before, run in pairwise(ordered):
            pair = Pair(cluster, run, before, difference_of(before, run))
            if pair.days is None:
                gaps.append(gap("trend_too_close", before=before.name, run=run.name))
            pairs.append(pair)
    return Runs(tuple(pairs), tuple(gaps), tuple(left_out))


def difference_of(before: AuditedRun, run: AuditedRun) -> Gap | None:
    """Return why what one of two runs has and the other has not is neither new nor gone."""
    both = {"before": before.name, "run": run.name}
    if before.is_redacted != run.is_redacted:
        return gap("trend_names_differ", **both, why="one of both has pseudonyms, the other names")
    if set(before.filters) != set(run.filters):
        return gap(
            "trend_filters_differ",
            **both,
            earlier_filters=_filters(before),
            filters=_filters(run),
        )
    if before.choices != run.choices:
        return gap(
            "trend_choices_differ",
            **both,
            earlier_choices=" ".join(before.choices) or "none",
            choices=" ".join(run.choices) or "none",
        )
    if before.logs is None or run.logs is None:
        return gap("trend_coverage_unknown", **both)
    differing = (before.logs ^ run.logs) | (before.lacks ^ run.lacks)
    if differing:
        return gap("trend_coverage_differs", **both, what=_named(differing))
    return None


def _filters(run: AuditedRun) -> str:
    return ", ".join(run.filters) or "none"


def _named(names: Iterable[str]) -> str:
    known = sorted(names)
    more = len(known) - _MOST_NAMED
    return ", ".join(known[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def without_table(run: AuditedRun, subject: str, table: str) -> Gap:
    """Return what cannot be told of a run as it lacks a table."""
    return gap("trend_without_table", run=run.name, subject=subject, table=table)
