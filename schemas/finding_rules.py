"""Rules of an audit, one file each in `rules/findings/`: what is looked for and what is said.

With the records that findings rest on (`rules/finding_records.json`) and the tools that commands
for a group are of (`rules/group_tools.json`).

Which findings share a cause, read from `rules/incidents.json`: they are one incident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal

import msgspec

from schemas.reading import Explained, Minutes, Number, SchemaError, Shape, documents, load, read_as

# Kafka's tools by type of group, read from `rules/group_tools.json`.
#
# Each refuses groups of another type (``ConsumerGroupCommand``, ``ShareGroupCommand``,
# ``StreamsGroupCommand``).


class GroupTool(Shape, frozen=True):
    """A tool.

    Attributes:
        name: Its file in Kafka's `bin`.
        topic_option: The option that names a topic.
    """

    name: str = msgspec.field(name="tool")
    topic_option: str


def tool_of(group_type: str) -> GroupTool:
    """Return the tool for groups of a type.

    Raises:
        SchemaError: There is no such type.
    """
    tools = group_tools()
    if group_type not in tools:
        raise SchemaError(f"no tool is declared for groups of type {group_type!r}")
    return tools[group_type]


def group_tools() -> Mapping[str, GroupTool]:
    """Return the tools by type of group.

    Raises:
        SchemaError: The file is not what it has to be.
    """
    return _tools().tools


def command_for_type() -> str:
    """Return the command that tells of which type a group is."""
    return _tools().type_not_known


class _Tools(Explained, frozen=True):
    tools: Mapping[str, GroupTool]
    type_not_known: str


@cache
def _tools() -> _Tools:
    return load(_Tools, "rules/group_tools.json")


# Where the records lie that findings rest on: joins with tables that have their positions.

LOCATION: Final = ("copy", "segment", "batch_position")
"""Columns of a table that says where in which file a record lies."""
FIRST, LAST = "first", "last"


class RecordSource(Shape, frozen=True):
    """How one kind of record is found.

    Attributes:
        about: Which record it is, in a sentence.
        table: The table that has its position.
        on: By column of that table, the column of a rule's rows that is the same.
        log: The topic that the record is in.
        partition: The column with the partition of that topic.
        offset: The column with its offset.
        take: Of several records the `first` or the `last` counts.
        at: The column with the time it was written, where the table has one.
        located_by: A table that tells copy, segment and batch of a record by partition, offset and
            group; None where `table` does.
    """

    about: str
    table: str
    on: Mapping[str, str]
    log: str
    partition: str = "coordinator_partition"
    offset: str = "record_offset"
    take: Literal["first", "last"] = "last"
    at: str | None = None
    located_by: str | None = None


@cache
def record_sources() -> Mapping[str, RecordSource]:
    """Return all of them, by what rules call them.

    Raises:
        SchemaError: The file is not what it has to be.
    """
    return load(dict[str, RecordSource], "rules/finding_records.json")


CRITICAL, WARNING, INFO = "critical", "warning", "info"
SEVERITIES: Final = (CRITICAL, WARNING, INFO)
"""The worst first."""

OPERATORS: Final = (
    *("is", "is_not", "is_null"),
    *("above", "at_least", "below", "at_most"),
    *("older_than", "within"),
)
"""Of a condition: the last two compare a time with the instant asked about."""

AGGREGATIONS: Final = ("count", "sum", "min", "max", "first", "names", "numbers")
"""How values of the rows of a finding become one; `numbers` are all, as commands list them."""

RECORD_AT: Final = "record_at"
"""In place of a column of `since`: when the record was written that a row rests on."""

_FOLDER: Final = "rules/findings"


class Threshold(Shape, frozen=True):
    """A number that decides.

    Attributes:
        value: As shipped, or as configured.
        unit: minutes, hours, days, records, bytes, share, times or count.
        about: What it decides.
    """

    value: Number
    unit: str
    about: str


class RestoreColumns(Shape, frozen=True):
    """Where the table of a rule has what `restore` can give back.

    Attributes:
        offset: The offset that was lost; null where none was.
        committed_at: When it was committed.
        lost_at: When it was lost.
        otherwise: The suggestion for a finding none of whose offsets can be given back.
        not_before: The instant before which it was not lost; null where `lost_at` is exact.
    """

    offset: str
    committed_at: str
    lost_at: str
    otherwise: str
    not_before: str | None = None

    def columns(self) -> set[str]:
        """Return the columns that are read."""
        named = {self.offset, self.committed_at, self.lost_at, self.not_before}
        return {"group_id", "topic", "partition", *(each for each in named if each is not None)}


@dataclass(frozen=True)
class FindingRule:
    """One rule.

    Attributes:
        name: Its name, which is the file's.
        subject: The part of an audit that it belongs to.
        severity: critical, warning or info.
        question: What it asks, in a sentence.
        why: What a finding means, and what mends it.
        table: The table it reads.
        where: Conditions, all of which hold for a row: `column` and one of `OPERATORS`.
        per: Columns whose values make one finding.
        object_type: What a finding is about.
        values: What the wording uses besides `per`: `take` (one of `AGGREGATIONS`), `column`, and
            how it is said (`as`: number, bytes, duration or time).
        message: The wording, with names of `per`, `values` and `thresholds` in braces.
        suggestion: What to do: a command, with names in braces; `{dump}` is the INPUT, `{tool}`
            Kafka's tool for groups of that type, `{topic_option}` its option that names a topic.
        restore: Where the suggestion gives lost offsets back, what it does so by: `{groups}`,
            `{before}` and `{folder}` are of the command that serves a finding's groups.
        thresholds: By name.
        since: The column, and which of its values, that says since when. `RECORD_AT` is when the
            record was written. None where there is no such instant.
        no_since: Why there is none.
        record: Columns that find the record again: `topic`, `partition`, `offset`, or `said` (one
            that has all of it), and `copy`, `segment`, `batch_position`.
        record_of: Names of `record_sources` by which it is found where the table does not
            have it, the first that finds one.
        no_record: Why no record shows it.
        is_on: Whether it is looked for.
        headline: What several findings of it come to, in one clause with `{count}`.
    """

    name: str
    subject: str
    severity: str
    question: str
    why: str
    table: str
    where: Sequence[Mapping[str, Any]]
    per: Sequence[str]
    object_type: str
    message: str
    suggestion: str
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    since: Mapping[str, str] | None = None
    no_since: str | None = None
    record: Mapping[str, str] = field(default_factory=dict)
    record_of: Sequence[str] = ()
    no_record: str | None = None
    restore: RestoreColumns | None = None
    is_on: bool = True
    headline: str = ""

    def columns(self) -> set[str]:
        """Return the columns of its table that it reads."""
        named = self.columns_of_conditions()
        named |= {each["column"] for each in self.values.values() if "column" in each}
        named |= set() if self.since is None else {self.since["column"]} - {RECORD_AT}
        named |= self.joined_by()
        found_by = {each for each in self.record.values() if not each.startswith("__")}
        given_back = set() if self.restore is None else self.restore.columns()
        return named | set(self.per) | found_by | given_back

    def columns_of_conditions(self) -> set[str]:
        """Return the columns of its table that tell which rows it is about."""
        named = {condition["column"] for condition in self.where}
        for condition in self.where:
            named |= {each["column"] for each in condition.values() if isinstance(each, Mapping)}
        return named

    def commands(self) -> list[str]:
        """Return the commands that it advises."""
        return [self.suggestion, *([] if self.restore is None else [self.restore.otherwise])]

    def names_tool_of_group(self) -> bool:
        """Return whether a command is one of the tool for its group's type."""
        return any("{tool}" in each for each in self.commands())

    def joined_by(self) -> set[str]:
        """Return the columns of its table by which records are found in others."""
        sources = record_sources()
        return {mine for each in self.record_of for mine in sources[each].on.values()}

    def configured(self, settings: Mapping[str, Any]) -> FindingRule:
        """Return the rule with a team's own severity and thresholds.

        Args:
            settings: `severity`, `enabled`, and thresholds by name.

        Raises:
            SchemaError: It has no such threshold, or that is no severity.
        """
        rest = dict(settings)
        severity, is_on = rest.pop("severity", self.severity), rest.pop("enabled", self.is_on)
        if severity not in SEVERITIES:
            raise SchemaError(f"{self.name}: severity {severity!r} is none of {SEVERITIES}")
        for name, value in rest.items():
            if name not in self.thresholds:
                known = ", ".join(("severity", "enabled", *self.thresholds))
                raise SchemaError(f"{self.name}: unknown threshold {name!r}; it has {known}")
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise SchemaError(f"{self.name}: {name} is {value!r}, which is not a number")
        thresholds = {
            name: msgspec.structs.replace(each, value=rest.get(name, each.value))
            for name, each in self.thresholds.items()
        }
        return replace(self, severity=severity, is_on=bool(is_on), thresholds=thresholds)


class _Since(Shape, frozen=True):
    take: str | None = None
    column: str | None = None
    none: str | None = None

    def __post_init__(self) -> None:
        if (self.take is None) is not (self.column is None):
            raise ValueError("names a column and which of its values, or neither")
        if (self.column is None) is (self.none is None):
            raise ValueError("is a column, or why there is none")


class _Record(Shape, frozen=True, omit_defaults=True):
    topic: str | None = None
    partition: str | None = None
    offset: str | None = None
    copy: str | None = None
    segment: str | None = None
    batch_position: str | None = None
    whole: str | None = msgspec.field(name="said", default=None)
    of: str | tuple[str, ...] = ()
    none: str | None = None

    def __post_init__(self) -> None:
        if bool(self.columns() or self.of) is (self.none is not None):
            raise ValueError("is how it is found, or why there is none")
        if unknown := sorted(set(self.sources()) - record_sources().keys()):
            raise ValueError(f"unknown records: {', '.join(unknown)}")

    def columns(self) -> dict[str, str]:
        named: dict[str, str] = msgspec.to_builtins(self)
        return {name: each for name, each in named.items() if name not in {"of", "none"}}

    def sources(self) -> tuple[str, ...]:
        return (self.of,) if isinstance(self.of, str) else self.of


class _Value(Shape, frozen=True, omit_defaults=True, rename={"kind": "as"}):
    take: Literal["count", "sum", "min", "max", "first", "names", "numbers"]
    column: str | None = None
    kind: Literal["number", "bytes", "duration", "time"] | None = None


class _Rule(Shape, frozen=True):
    subject: str
    severity: Literal["critical", "warning", "info"]
    question: str
    why: str
    table: str
    where: tuple[Mapping[str, Any], ...]
    per: tuple[str, ...]
    object_type: str
    message: str
    suggestion: str
    since: _Since
    record: _Record
    values: Mapping[str, _Value] = {}
    thresholds: Mapping[str, Threshold] = {}
    restore: RestoreColumns | None = None
    headline: str | None = None

    def __post_init__(self) -> None:
        for condition in self.where:
            operators = condition.keys() - {"column"}
            if "column" not in condition or len(operators) != 1 or not operators <= set(OPERATORS):
                raise ValueError(f"not a condition: {condition}")


@cache
def finding_rules() -> tuple[FindingRule, ...]:
    """Return all rules as they are shipped, by name.

    Raises:
        SchemaError: A file is not what a rule has to be.
    """
    return tuple(rule_of(name, content) for name, _, content in documents(_FOLDER))


def rule_of(name: str, content: object) -> FindingRule:
    """Return the rule of a file.

    Raises:
        SchemaError: Something is missing, unknown or not allowed there.
    """
    file = f"{_FOLDER}/{name}.json"
    written = read_as(_Rule, content, file)
    since = {"take": written.since.take, "column": written.since.column}
    rule = FindingRule(
        name=name,
        subject=written.subject,
        severity=written.severity,
        question=written.question,
        why=written.why,
        table=written.table,
        where=written.where,
        per=written.per,
        object_type=written.object_type,
        message=written.message,
        suggestion=written.suggestion,
        values={key: msgspec.to_builtins(each) for key, each in written.values.items()},
        thresholds=written.thresholds,
        since={key: each for key, each in since.items() if each is not None} or None,
        no_since=written.since.none,
        no_record=written.record.none,
        record=written.record.columns(),
        record_of=written.record.sources(),
        restore=written.restore,
        headline=written.headline or f"{name.replace('_', ' ')}: {{count}}",
    )
    _check_commands(rule, file)
    return rule


def _check_commands(rule: FindingRule, file: str) -> None:
    if "group_id" in rule.per:
        return
    if rule.names_tool_of_group():
        raise SchemaError("{tool} needs findings by group_id", file=file)
    if rule.restore is not None:
        raise SchemaError("restore needs findings by group_id", file=file)


LINE, COPY, TOPIC, GROUP, RULE = "line", "copy", "topic", "group", "rule"
"""What findings of one incident share."""

_FILE: Final = "rules/incidents.json"


class Cause(Explained, frozen=True):
    """A cause that findings of several rules, or several of one, may share.

    Attributes:
        rules: The rules; the command of the first that found something is the one to begin with.
        shared: What their findings have to share.
        title: What all of them come to: a template of the counts `groups` and, by the names of
            `rules`, of findings; of `topic`, `copy` or `group` where it is shared; and of a line
            `records`, `partitions`, `copies` and `at_least`.
        needs: Those of the rules without whose findings the title would say too much.
        titles: By rule the title, a template likewise, where no other rule found anything.
    """

    rules: tuple[str, ...]
    shared: Literal["line", "copy", "topic", "group", "rule"]
    title: str
    needs: tuple[str, ...] = ()
    titles: Mapping[str, str] = {}


class MostGroups(Explained, frozen=True):
    """Of how many groups each is told for itself."""

    groups: int


class Losses(Explained, frozen=True):
    """Rules whose findings say that something is lost, or soon will be."""

    rules: frozenset[str]


class IncidentCauses(Explained, frozen=True):
    """All of them.

    Attributes:
        elections_within: How soon after each other elections are one failure of a broker.
        groups_at_most: Of how many groups, each with a cause of its own, each is an incident.
        losses: What comes first of what is equally severe.
        causes: By name.
    """

    elections_within: Minutes
    groups_at_most: MostGroups
    losses: Losses
    causes: Mapping[str, Cause]

    def __post_init__(self) -> None:
        """Refuse what could not be applied.

        Raises:
            ValueError: A rule is none, or of two causes, or needed and not one of its cause's.
        """
        known = {each.name for each in finding_rules()}
        named = [rule for each in self.causes.values() for rule in each.rules]
        if unknown := sorted({*named, *self.losses.rules} - known):
            raise ValueError(f"unknown rules: {', '.join(unknown)}")
        if twice := sorted({each for each in named if named.count(each) > 1}):
            raise ValueError(f"rules of two causes: {', '.join(twice)}")
        for name, each in self.causes.items():
            if not {*each.needs, *each.titles} <= set(each.rules):
                raise ValueError(f"{name} needs or titles rules that are not its own")


@cache
def incident_causes() -> IncidentCauses:
    """Return the causes.

    Raises:
        SchemaError: The file is not what it has to be.
    """
    return load(IncidentCauses, _FILE)
