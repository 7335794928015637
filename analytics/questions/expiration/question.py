"""Which offsets of a replayed workspace expire when, which are gone and why, and what if."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.answer import Evaluated
from analytics.questions.expiration.chosen_era import ChosenEra, chosen_era
from analytics.questions.expiration.expiry_tables import expiry_tables
from analytics.questions.expiration.group_tables import group_tables
from analytics.questions.expiration.offset_expiration import CANNOT_TELL
from analytics.questions.expiration.retention_settings import (
    RetentionFound,
    SettingSources,
    retention_found,
    with_state,
)
from analytics.questions.expiration.tables import FATES, NOTES, ExpirationQuestion, LogEnds
from analytics.replay.dump.times import milliseconds
from analytics.replayed.answered_instant import instant_of
from schemas import CONSUMER_OFFSETS
from schemas.expiration_rules import audit_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.gaps.group_selection import GroupSelection
    from analytics.replayed.given_settings import Settings
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

NEEDS: Final = (
    *("groups", "committed_offsets", "pending_offsets", "topics", "configs", "partition_leaders"),
)
"""The state tables that are read."""


@dataclass(frozen=True)
class ChosenRules:
    """By which rules offsets expire, and how long they are kept.

    Attributes:
        era: Kafka's rules.
        retention: Of every coordinator, and the retentions to try.
    """

    era: ChosenEra
    retention: RetentionFound


@dataclass(frozen=True)
class ExpirationFound(Evaluated):
    """The tables, and what is told of all offsets where only the worst have rows.

    Attributes:
        fates: How many offsets of each group fare how, as `all_fates` has it.
        notes: Of how many offsets there is which note, as `all_notes` has it.
    """

    fates: pa.Table = field(default_factory=lambda: pa.table({}))
    notes: pa.Table = field(default_factory=lambda: pa.table({}))

    @property
    def offsets(self) -> int:
        """How many offsets there are."""
        return pc.sum(self.fates["offsets"]).as_py() or 0


def chosen_rules(
    state: ReplayedWorkspace,
    settings: Settings,
    minutes: Sequence[int] = (),
    era: str | None = None,
    kafka_version: str | None = None,
) -> ChosenRules:
    """Settle rules and retention.

    Args:
        state: A replayed workspace.
        settings: Of brokers and groups, as far as a person gives them.
        minutes: Retentions to try; a single one is taken to be in force.
        era: The name of an era of rules; None goes by the release.
        kafka_version: The release that a person names; None goes by the dump.

    Raises:
        InputUnreadableError: A setting is no whole number.
    """
    configs, leaders = state.tables.read("configs"), state.tables.read("partition_leaders")
    sources = SettingSources(
        release=state.release, brokers=settings.brokers, given=settings.given, minutes=minutes
    )
    return ChosenRules(
        chosen_era(era, kafka_version, state.manifest),
        retention_found(with_state(sources, configs, leaders)),
    )


def evaluate_expiration(
    state: ReplayedWorkspace,
    groups: GroupSelection,
    rules: ChosenRules,
    ends: pa.Table,
    settings: Settings,
    *,
    with_requests: bool,
    most: int | None = None,
) -> ExpirationFound:
    """Return `offset_expiration`, `offset_removals`, `retention_what_if` and `group_endings`.

    Args:
        state: A replayed workspace with `NEEDS`.
        groups: The groups that are asked about.
        rules: As `chosen_rules` settles them.
        ends: Log start and end offsets of data partitions (`end_offsets`).
        settings: Their thresholds count here.
        with_requests: Add `commit_requests`.
        most: So many rows of `offset_expiration`, the worst; None is all of them.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    question = _question(state, rules, ends, settings)
    tables = expiry_tables(state, question, most)
    fates, notes = tables.pop(FATES), tables.pop(NOTES)
    tables |= group_tables(state, tables["offset_removals"], question, with_requests=with_requests)
    return ExpirationFound(tables, groups, tuple(_doubts(tables, notes)), fates, notes)


def _question(
    state: ReplayedWorkspace, rules: ChosenRules, ends: pa.Table, settings: Settings
) -> ExpirationQuestion:
    partitions = [
        each
        for each in state.manifest["partitions"]
        if each["topic"] == CONSUMER_OFFSETS and each.get("is_leading", True)
    ]
    places = (place.rpartition("-") for place in state.as_of["offsets"])
    return ExpirationQuestion(
        era=rules.era.era,
        before=rules.era.before,
        retention=rules.retention.retention,
        minutes=rules.retention.minutes,
        audit=audit_rules(settings.given.thresholds("expiration")),
        as_of_ms=milliseconds(instant_of(state)),
        cut_partitions=frozenset(
            int(partition) for topic, _, partition in places if topic == CONSUMER_OFFSETS
        ),
        complete_from={
            each["partition"]: each["complete_from"] for each in partitions if each["complete_from"]
        },
        ends=[LogEnds(*(row[name] for name in LogEnds._fields)) for row in ends.to_pylist()],
    )


def _doubts(tables: Mapping[str, pa.Table], notes: pa.Table) -> list[str]:
    """Return what cannot be told, each reason once with how often."""
    removals, what_if = (_reasons(tables[n]) for n in ("offset_removals", "retention_what_if"))
    doubts = notes.filter(pc.starts_with(notes["note"], CANNOT_TELL))
    expiry = zip(doubts["note"].to_pylist(), doubts["offsets"].to_pylist(), strict=True)
    return [
        *(f"whether {_count(n, 'offset')} were removed rightly: {why}" for why, n in removals),
        *(
            f"whether and when {_count(n, 'offset')} will expire: {note.removeprefix(CANNOT_TELL)}"
            for note, n in expiry
        ),
        *(f"what {_count(n, 'group')} would have lost: {why}" for why, n in what_if),
    ]


def _reasons(rows: pa.Table) -> Iterable[tuple[str, int]]:
    rows = rows.filter(pc.equal(rows["verdict"], "cannot_tell"))
    counts = pc.value_counts(rows["reason"].combine_chunks()).to_pylist()
    return sorted((each["values"] or "not known", each["counts"]) for each in counts)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
