"""Which offsets of a replayed workspace expire when, which are gone and why, and what if."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow.compute as pc

from analytics.gaps.gap import Gap, gap
from analytics.gaps.group_selection import select_groups
from analytics.questions.answer import Answer
from analytics.questions.expiration.chosen_era import ChosenEra, chosen_era
from analytics.questions.expiration.expiry_tables import expiry_tables
from analytics.questions.expiration.group_tables import group_tables
from analytics.questions.expiration.retention_settings import (
    MINUTE_MS,
    RetentionFound,
    SettingSources,
    retention_found,
    with_state,
)
from analytics.questions.expiration.tables import FATES, NOTES, ExpirationQuestion, LogEnds
from analytics.questions.question import Question
from analytics.replay.dump.times import milliseconds
from analytics.replay.log.arrow_rows import arrow_rows
from analytics.replayed.answered_instant import instant_of
from analytics.replayed.end_offsets import end_offsets_at
from analytics.tables.parted_table import PartedTable, PartedTables
from schemas import CONSUMER_OFFSETS
from schemas.expiration_rules import audit_rules, group_endings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from analytics.replayed.replayed_workspace import ReplayedWorkspace


@dataclass(frozen=True)
class ExpirationSettings:
    """What of expiration is asked.

    Attributes:
        retention_minutes: Retentions to try; a single one is taken to be in force.
        rules: The era whose rules apply, as `--rules` names it; None goes by the release.
        kafka_version: The release that a person names; None goes by the dump.
        end_offsets: A file with log start and end offsets of data partitions.
        with_requests: Answer with `commit_requests`, too.
        most: So many rows of `offset_expiration`, the worst; None is all of them.
    """

    retention_minutes: tuple[int, ...] = ()
    rules: str | None = None
    kafka_version: str | None = None
    end_offsets: str | None = None
    with_requests: bool = True
    most: int | None = None


@dataclass(frozen=True)
class ChosenRules:
    """By which rules offsets expire, and how long they are kept.

    Attributes:
        era: Kafka's rules.
        retention: Of every coordinator, and the retentions to try.
    """

    era: ChosenEra
    retention: RetentionFound


def expiration(state: ReplayedWorkspace, settings: ExpirationSettings) -> Answer:
    """Return which offsets expire when, which are gone and why, and what if.

    Its figures are `fates`, how many offsets of each group fare how (`all_fates`), and `notes`, of
    how many offsets there is which note (`all_notes`).

    Raises:
        InputUnreadableError: A setting is no whole number, or the file cannot be read.
        SchemaError: A threshold is none.
        WorkspaceError: A table cannot be read.
    """
    rules = _chosen_rules(state, settings)
    question = _question(state, rules, end_offsets_at(state, settings.end_offsets))
    made = expiry_tables(state, question, settings.most)
    tables, notes = dict(made.tables), arrow_rows(made.notes)
    figures = {FATES: tables.pop(FATES), NOTES: notes}
    removals = tables["offset_removals"].whole()
    tables |= group_tables(state, removals, question, with_requests=settings.with_requests)
    retention = rules.retention
    return Answer(
        PartedTables(tables),
        select_groups(state),
        tuple(_doubts(tables, notes)),
        warnings=tuple(retention.findings),
        statements=(rules.era.explanation, *retention.explanations),
        summary={
            "rules": rules.era.era.name,
            "rules_said": rules.era.explanation,
            "retention": list(retention.explanations),
            "retention_in_force": _in_force(retention),
            "retention_tried": list(retention.minutes),
            "findings": list(retention.findings),
            "group_endings_said": dict(group_endings()),
        },
        figures=figures,
    )


def _chosen_rules(state: ReplayedWorkspace, settings: ExpirationSettings) -> ChosenRules:
    """Settle rules and retention.

    Raises:
        InputUnreadableError: A setting is no whole number.
    """
    configs, leaders = state.tables.read("configs"), state.tables.read("partition_leaders")
    sources = SettingSources(
        release=state.release,
        brokers=state.settings.brokers,
        overrides=state.settings.from_file,
        minutes=settings.retention_minutes,
    )
    return ChosenRules(
        chosen_era(settings.rules, settings.kafka_version, state.manifest),
        retention_found(with_state(sources, configs, leaders)),
    )


def _in_force(retention: RetentionFound) -> dict[str, Any]:
    each = retention.retention.otherwise
    return {
        "retention_minutes": each.retention_ms // MINUTE_MS,
        "retention_source": each.source,
        "check_interval_ms": each.check_interval_ms,
    }


def _question(state: ReplayedWorkspace, rules: ChosenRules, ends: pa.Table) -> ExpirationQuestion:
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
        audit=audit_rules(state.settings.from_file.thresholds("expiration")),
        as_of_ms=milliseconds(instant_of(state)),
        cut_partitions=frozenset(
            int(partition) for topic, _, partition in places if topic == CONSUMER_OFFSETS
        ),
        complete_from={
            each["partition"]: each["complete_from"] for each in partitions if each["complete_from"]
        },
        ends=[LogEnds(*(row[name] for name in LogEnds._fields)) for row in ends.to_pylist()],
    )


def _doubts(tables: Mapping[str, PartedTable], notes: pa.Table) -> list[Gap]:
    """Return what cannot be told, each reason once with how often."""
    removals, what_if = (_reasons(tables[n]) for n in ("offset_removals", "retention_what_if"))
    doubts = notes.filter(notes["is_untold"])
    expiry = zip(doubts["note"].to_pylist(), doubts["offsets"].to_pylist(), strict=True)
    return [
        *(gap("removals_unjudged", offsets=n, why=why) for why, n in removals),
        *(gap("expiry_unknown", offsets=n, why=note) for note, n in expiry),
        *(gap("loss_in_what_if_unknown", groups=n, why=why) for why, n in what_if),
    ]


def _reasons(rows: PartedTable) -> Iterable[tuple[str, int]]:
    counts: Counter[str | None] = Counter()
    for piece in rows.where(pl.col("verdict") == "cannot_tell").pieces(["reason"]):
        for each in pc.value_counts(piece["reason"].combine_chunks()).to_pylist():
            counts[each["values"]] += each["counts"]
    return sorted((why or "not known", count) for why, count in counts.items())


EXPIRATION: Final = Question(
    name="expiration",
    needs=(
        *("groups", "committed_offsets", "pending_offsets", "topics", "configs"),
        "partition_leaders",
    ),
    tables=(
        *("offset_expiration", "offset_removals", "retention_what_if", "group_endings"),
        "commit_requests",
    ),
    settings=ExpirationSettings,
    answer=expiration,
)
