"""Which offsets of a replayed workspace expire when, which are gone and why, and what if."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow.compute as pc

from analytics.contracts import arrow_rows, polars_rows
from analytics.engine.part_runs import GroupPart
from analytics.gaps.gap import Gap, gap
from analytics.gaps.group_selection import HOMES, Chosen, select_groups
from analytics.gaps.internal_topics import removals_unread
from analytics.questions.expiration.commit_requests import requests_of_groups
from analytics.questions.expiration.group_endings import OF_GROUPS
from analytics.questions.expiration.offset_log import GroupRecords, instants_of
from analytics.questions.expiration.offset_removals import Cluster
from analytics.questions.expiration.retention_settings import (
    MINUTE_MS,
    RetentionFound,
    SettingSources,
    retention_found,
    with_state,
)
from analytics.questions.expiration.tables import (
    COMMITTED,
    FATES,
    NOTES,
    PENDING,
    STATE,
    ExpirationQuestion,
    ExpirationTables,
    GroupLot,
    LogEnds,
    ReplayedFacts,
    expiration_tables,
)
from analytics.questions.question import Answer, Question, check_choice
from analytics.replay.dump.choices import assumed_in
from analytics.replay.dump.coverage import coverage_of
from analytics.replay.dump.times import milliseconds
from analytics.replay.groups.group_records import KINDS
from analytics.replay.history.partition_history import START_TABLES, coordinator_starts
from analytics.replay.log.log_times import COMMITS, GROUPS
from analytics.replay.log.rules import named_release, replay_rules
from analytics.replay.metadata_log import AROUND, metadata_log
from analytics.replay.offsets.commit_rows import (
    COMMIT_FIELDS,
    MARKER_FIELDS,
    MARKERS,
    with_offsets_in_force,
)
from analytics.replay.offsets.commit_rows import COMMITS as COMMIT_ROWS
from analytics.replayed.end_offsets import coordinator_leaders, end_offsets_at, ends_statement
from analytics.replayed.group_rows import StoredGroups, whole
from analytics.replayed.records import RecordGroups, Records
from analytics.replayed.replayed_workspace import instant_of
from analytics.replayed.whole_groups import whole_group_parts
from analytics.tables.buckets import packed
from analytics.tables.parted_table import PartedTable, PartedTables
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS
from schemas.expiration_rules import (
    audit_rules,
    era_of_release,
    expiration_eras,
    group_endings,
)
from schemas.releases import release_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.expiration_rules import ExpirationRules
    from schemas.manifest import Manifest

# The tables about the expiry of offsets, made of a replayed workspace and its records.

AT_ONCE: Final = 500_000
"""So many records are held together, or those of one group where it has more."""

_OF_COMMITTED: Final = (
    *("group_id", "coordinator_partition", "record_offset", "complete", "missing"),
)
_MARKERS: Final = "control_markers"
_UNREAD: Final = ("committed_leader_epoch", "batch_offset")
"""Of commits: nothing about expiry rests on them."""
_OF_COMMITS: Final = {name: field for name, field in COMMIT_FIELDS.items() if name not in _UNREAD}
_OF_REMOVALS: Final = ("copy", "segment", "batch_position")
"""Where a tombstone lies, which is told of nothing else."""
_PLAIN: Final = ("partition", "offset", "timestamp", "leader_epoch", "is_tombstone", "key")
_WITH_VALUES: Final = (
    "group_metadata",
    "consumer_group_member_metadata",
    "consumer_group_regular_expression",
    "streams_group_topology",
)
_OF_CLASSIC: Final = ("protocol_type", "protocol", "current_state_timestamp", "generation")
_OF_METADATA: Final = ("topic", "offset", "timestamp", "segment")


def expiry_tables(
    state: ReplayedWorkspace, question: ExpirationQuestion, most: int | None = None
) -> ExpirationTables:
    """Return what `expiration_tables` makes.

    Args:
        state: A replayed workspace.
        question: What is asked.
        most: So many rows of `offset_expiration`, the worst; None is all of them.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    records = _Records(state, question.cut_partitions)
    topics = polars_rows(state.tables.read("topics"))
    coverage = coverage_of(
        state.manifest, records.instant, state.source, state.lines, assumed_in(state.manifest)
    )
    metadata = metadata_log(records.of_metadata())
    known = ReplayedFacts(
        Cluster(topics, metadata.begins, coverage.data_topics, coverage),
        coordinator_starts(metadata, topics),
        replay_rules(state.release),
        records.instants(question.as_of_ms),
    )
    are_apart = not records.are_timeless
    with records.lots() as lots:
        return expiration_tables(
            question, known, lots, state.runner, most=most, are_apart=are_apart
        )


class _Records:
    """The records of a workspace that count, of all groups: of one they are evidence on others.

    Such tell when a release or a coordinator began, when the offsets of a deleted topic were
    removed, and what bounds the time of a record that has none.
    """

    def __init__(self, state: ReplayedWorkspace, cut_partitions: Collection[int]) -> None:
        self._state, self._cut_partitions = state.of_everything, sorted(cut_partitions)
        self._records = Records(self._state)
        self.instant = self._records.instant

    @cached_property
    def are_timeless(self) -> bool:
        """Whether commits lack their time: what bounds it are records of any group around them."""
        return self._records.of_asked.count((COMMITS,), pc.field("timestamp").is_null()) > 0

    @contextmanager
    def lots(self) -> Iterator[Sequence[GroupPart]]:
        """Give the records of all groups, some groups at a time; at least one lot."""
        reader = self._records.of_asked
        if self.are_timeless:
            counts = reader.counts((COMMITS, *KINDS))
            yield [GroupPart(partial(self._lot_of, each)) for each in packed(counts, AT_ONCE)]
            return
        sources, count = self._of_groups(self._records), reader.count((COMMITS, *KINDS))
        runner = self._state.runner
        with whole_group_parts(sources, AT_ONCE, runner.folder, count, runner.run_tasks) as parts:
            yield [each.then(_lot) for each in parts]

    def instants(self, as_of_ms: int) -> dict[int, int]:
        """Return the instant of the partitions that are cut at an offset, as `instants_of` does."""
        if not self._cut_partitions:
            return {}
        fields = {"coordinator_partition": "partition", "at": "timestamp"}
        there = Records(self._state, self._cut_partitions)
        return instants_of(
            pl.concat(there.rows(name, fields) for name in (COMMITS, GROUPS)), as_of_ms
        )

    def of_metadata(self) -> dict[str, pl.DataFrame]:
        """Return the records of the metadata log that are looked at."""
        found = {}
        for name in dict.fromkeys((*AROUND, *START_TABLES)):
            fields = [*_OF_METADATA, *(["value"] if name in START_TABLES else [])]
            found[name] = self._records.rows(
                name, {each: each for each in fields}, CLUSTER_METADATA
            )
        return found

    def _lot_of(self, partitions: Sequence[int]) -> dict[str, pl.DataFrame]:
        """Return the records of whole partitions."""
        records = Records(self._state, partitions)
        return _lot({name: whole(rows) for name, rows in self._of_groups(records).items()})

    def _of_groups(self, records: Records) -> dict[str, RecordGroups | StoredGroups]:
        """Return what is looked at of groups, with the state of their offsets."""
        group, key = pl.col("group_id"), pl.col("key").struct
        found: dict[str, RecordGroups | StoredGroups] = {
            COMMITS: RecordGroups(records, COMMITS, _OF_COMMITS, group, _light_commits),
            _MARKERS: RecordGroups(records, _MARKERS, MARKER_FIELDS, None),
        }
        for name, kind in KINDS.items():
            light = _light_groups if name == GROUPS else None
            its = key.field(kind.group_field)
            found[name] = RecordGroups(records, name, _fields(name), its, light)
        tables, left_out = self._state.tables, ("group_id",)
        found[COMMITTED] = StoredGroups(
            tables, "committed_offsets", _OF_COMMITTED, left_out=left_out
        )
        found[PENDING] = StoredGroups(tables, "pending_offsets", ("group_id",))
        return {**found, STATE: StoredGroups(tables, "groups", OF_GROUPS)}


def _lot(rows: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the rows of a `GroupLot`."""
    unread = (pl.lit(None, COMMIT_ROWS[name]).alias(name) for name in _UNREAD)
    commits = rows[COMMITS].with_columns(unread).select(COMMIT_ROWS.names()).cast(COMMIT_ROWS)
    markers = rows[_MARKERS].cast(MARKERS)
    records = GroupRecords(commits, markers, {name: rows[name] for name in KINDS})
    return GroupLot(records, rows[COMMITTED], rows[STATE], rows[PENDING]).rows


def _light_commits(rows: pl.DataFrame) -> pl.DataFrame:
    return with_offsets_in_force(rows).with_columns(
        pl.when("is_tombstone").then(name).alias(name) for name in _OF_REMOVALS
    )


def _light_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out what classic groups stored and expiry does not heed: most of all assignments."""
    value, decoded = (
        pl.col("value").struct,
        pl.element().struct.field("subscription_decoded").struct,
    )
    read = pl.struct(decoded.field("fields_written"), decoded.field("topics"))
    members = value.field("members").list.eval(pl.struct(read.alias("subscription_decoded")))
    told = (value.field(name) for name in _OF_CLASSIC)
    return rows.with_columns(pl.struct(*told, members.alias("members")).alias("value"))


def _fields(name: str) -> dict[str, str]:
    fields: Sequence[str] = _PLAIN
    if name in _WITH_VALUES:
        fields = [*_PLAIN, "value_version", "value"]
    return {each: each for each in fields}


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

    def __post_init__(self) -> None:
        """Refuse rules that there are none of.

        Raises:
            SettingRefusedError: `rules` is no name of an era.
        """
        if self.rules is not None:
            check_choice("rules", self.rules, expiration_eras())


# Which era's rules of expiry apply: the one asked for, or that of the release, and why.

OLDEST, NEWEST = "pre-2.1", "current"
_SHOWN_BY_EVERY_3_X = "2.3"
"""Without a metadata log, records of this and of all releases up to 3.9 look alike."""

_LATER = "3.2-3.9"


@dataclass(frozen=True)
class ChosenEra:
    """The rules, those of what was written before an upgrade, and a sentence that says so."""

    era: ExpirationRules
    before: ExpirationRules | None
    explanation: str


def chosen_era(era_name: str | None, kafka_version: str | None, manifest: Manifest) -> ChosenEra:
    """Return the rules that apply.

    Args:
        era_name: A name of an era, or None to go by the release.
        kafka_version: `--kafka-version`, or None.
        manifest: Of the dump: it says at least which release wrote it.
    """
    eras = expiration_eras()
    if era_name is not None:
        return ChosenEra(eras[era_name], None, f"rules: {era_name}, as asked for")
    before = eras[OLDEST]
    named = named_release(manifest)
    if kafka_version is not None:
        era = era_of_release(kafka_version)
        why = f"of Kafka {kafka_version}, as asked for"
    elif named is not None:
        era = era_of_release(named)
        why = f"of Kafka {named}, as it was replayed"
    else:
        at_least = manifest["kafka_version"].get("at_least")
        if at_least is None:
            era, why = eras[NEWEST], "the newest: nothing shows which release wrote this"
        else:
            era = era_of_release(at_least)
            why = f"by release: written by Kafka {at_least} or newer"
            if release_key(at_least)[:2] == release_key(_SHOWN_BY_EVERY_3_X):
                era = eras[_LATER]
                why += ", and nothing tells 2.3 from the releases up to 3.9"
    sentence = f"rules: {era.name} ({why}); --rules or --kafka-version choose others"
    return ChosenEra(era, None if era.per_offset else before, sentence)


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
    if settings.with_requests:
        tables |= requests_of_groups(state, question.era, rules.retention.retention)
    retention = rules.retention
    return Answer(
        PartedTables(tables),
        select_groups(state, columns=HOMES),
        (*_doubts(tables, notes), *_unread(state, tables)),
        warnings=tuple(retention.findings),
        statements=(
            *(rules.era.explanation, *retention.explanations),
            *ends_statement(state, settings.end_offsets),
        ),
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
    configs, leaders = state.tables.read("configs"), coordinator_leaders(state)
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
        chosen=Chosen.of(state),
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


def _unread(state: ReplayedWorkspace, tables: Mapping[str, PartedTable]) -> list[Gap]:
    """Return that causes of the removals may stand in records of groups that are not there."""
    unread = removals_unread(state.manifest)
    return [unread] if unread is not None and tables["offset_removals"].num_rows else []


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
