"""Rules of an audit, one file each in `rules/findings/`: what is looked for and what is said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final

from schemas.model import SchemaError

# Kafka's tools by type of group, read from `rules/group_tools.json`.
#
# Each refuses groups of another type (``ConsumerGroupCommand``, ``ShareGroupCommand``,
# ``StreamsGroupCommand``).

_TOOLS: Final = "rules/group_tools.json"


@dataclass(frozen=True)
class GroupTool:
    """A tool.

    Attributes:
        name: As Kafka's packages of other systems call it; its own has `.sh` behind it.
        topic_option: The option that names a topic.
    """

    name: str
    topic_option: str

    @property
    def script(self) -> str:
        """Return its file in Kafka's `bin`."""
        return f"{self.name}.sh"


def tool_of(group_type: str) -> GroupTool:
    """Return the tool for groups of a type.

    Raises:
        SchemaError: There is no such type.
    """
    tools = group_tools()
    if group_type not in tools:
        raise SchemaError(f"no tool is declared for groups of type {group_type!r}")
    return tools[group_type]


@cache
def group_tools() -> Mapping[str, GroupTool]:
    """Return the tools by type of group.

    Raises:
        SchemaError: The file is not what it has to be.
    """
    try:
        return {
            group_type: GroupTool(each["tool"], each["topic_option"])
            for group_type, each in _tools_document()["tools"].items()
        }
    except KeyError as error:
        raise SchemaError(f"{_TOOLS}: {error} is missing") from error


def command_for_type() -> str:
    """Return the command that tells of which type a group is."""
    return str(_tools_document()["type_not_known"])


@cache
def _tools_document() -> Mapping[str, Any]:
    text = files(__package__).joinpath(_TOOLS).read_text(encoding="utf-8")
    document: Mapping[str, Any] = json.loads(text)
    return document


# Where the records lie that findings rest on: joins with tables that have their positions.

LOCATION: Final = ("copy", "segment", "batch_position")
"""Columns of a table that says where in which file a record lies."""
FIRST, LAST = "first", "last"

_FILE = "rules/finding_records.json"


@dataclass(frozen=True)
class RecordSource:
    """How one kind of record is found.

    Attributes:
        name: What rules call it.
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

    name: str
    about: str
    table: str
    on: Mapping[str, str]
    log: str
    partition: str = "coordinator_partition"
    offset: str = "record_offset"
    take: str = LAST
    at: str | None = None
    located_by: str | None = None


@cache
def record_sources() -> Mapping[str, RecordSource]:
    """Return all of them, by name.

    Raises:
        SchemaError: The file is not what it has to be.
    """
    text = files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    return {name: record_source(name, each) for name, each in json.loads(text).items()}


def record_source(name: str, document: Mapping[str, Any]) -> RecordSource:
    """Return one of a file.

    Raises:
        SchemaError: Something is missing, unknown or not allowed there.
    """
    try:
        source = RecordSource(name=name, **document)
    except TypeError as error:
        raise SchemaError(f"record {name}: {error}") from error
    if source.take not in {FIRST, LAST}:
        raise SchemaError(f"record {name}: take is {source.take!r}, not {FIRST} or {LAST}")
    return source


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

_FOLDER = "rules/findings"


@dataclass(frozen=True)
class Threshold:
    """A number that decides.

    Attributes:
        value: As shipped, or as configured.
        unit: minutes, hours, days, records, bytes, share, times or count.
        about: What it decides.
    """

    value: float
    unit: str
    about: str


@dataclass(frozen=True)
class RestoreColumns:
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
        record_of: Names of `schemas.finding_rules` by which it is found where the table does not
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
        named = {condition["column"] for condition in self.where}
        for condition in self.where:
            named |= {each["column"] for each in condition.values() if isinstance(each, Mapping)}
        named |= {each["column"] for each in self.values.values() if "column" in each}
        named |= set() if self.since is None else {self.since["column"]} - {RECORD_AT}
        named |= self.joined_by()
        found_by = {each for each in self.record.values() if not each.startswith("__")}
        given_back = set() if self.restore is None else self.restore.columns()
        return named | set(self.per) | found_by | given_back

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
            name: replace(each, value=rest.get(name, each.value))
            for name, each in self.thresholds.items()
        }
        return replace(self, severity=severity, is_on=bool(is_on), thresholds=thresholds)


@cache
def finding_rules() -> tuple[FindingRule, ...]:
    """Return all rules as they are shipped, by name.

    Raises:
        SchemaError: A file is not what a rule has to be.
    """
    folder = files(__package__).joinpath(_FOLDER)
    found = [
        rule_of(each.name.removesuffix(".json"), json.loads(each.read_text(encoding="utf-8")))
        for each in folder.iterdir()
        if each.name.endswith(".json")
    ]
    return tuple(sorted(found, key=lambda each: each.name))


def rule_of(name: str, document: Mapping[str, Any]) -> FindingRule:
    """Return the rule of a file.

    Raises:
        SchemaError: Something is missing, unknown or not allowed there.
    """
    said = dict(document)
    record, since = dict(said.pop("record", {})), said.pop("since", {})
    record_of = record.pop("of", ())
    try:
        rule = FindingRule(
            name=name,
            subject=said.pop("subject"),
            severity=said.pop("severity"),
            question=said.pop("question"),
            why=said.pop("why"),
            table=said.pop("table"),
            where=tuple(said.pop("where")),
            per=tuple(said.pop("per")),
            object_type=said.pop("object_type"),
            message=said.pop("message"),
            suggestion=said.pop("suggestion"),
            values=said.pop("values", {}),
            thresholds={
                key: Threshold(each["value"], each["unit"], each["about"])
                for key, each in said.pop("thresholds", {}).items()
            },
            since=since if since.keys() == {"take", "column"} else None,
            no_since=since.get("none"),
            no_record=record.pop("none", None),
            record=record,
            record_of=(record_of,) if isinstance(record_of, str) else tuple(record_of),
            restore=_restore_columns(name, said.pop("restore", None)),
            headline=said.pop("headline", f"{name.replace('_', ' ')}: {{count}}"),
        )
    except KeyError as error:
        raise SchemaError(f"rule {name}: {error} is missing") from error
    if said:
        raise SchemaError(f"rule {name}: unknown: {', '.join(said)}")
    _check(rule)
    return rule


def _restore_columns(name: str, document: Mapping[str, str] | None) -> RestoreColumns | None:
    if document is None:
        return None
    try:
        return RestoreColumns(**document)
    except TypeError as error:
        raise SchemaError(f"rule {name}: restore: {error}") from error


def _check(rule: FindingRule) -> None:
    if rule.severity not in SEVERITIES:
        raise SchemaError(f"rule {rule.name}: severity {rule.severity!r} is none of {SEVERITIES}")
    _check_commands(rule)
    if (rule.since is None) is (rule.no_since is None):
        raise SchemaError(f"rule {rule.name}: since is a column, or why there is none")
    if bool(rule.record or rule.record_of) is (rule.no_record is not None):
        raise SchemaError(f"rule {rule.name}: record is how it is found, or why there is none")
    unknown = set(rule.record_of) - record_sources().keys()
    if unknown:
        raise SchemaError(f"rule {rule.name}: unknown records: {', '.join(sorted(unknown))}")
    for condition in rule.where:
        operators = set(condition) - {"column"}
        if "column" not in condition or len(operators) != 1 or not operators <= set(OPERATORS):
            raise SchemaError(f"rule {rule.name}: not a condition: {condition}")
    for value in rule.values.values():
        if value.get("take") not in AGGREGATIONS:
            raise SchemaError(f"rule {rule.name}: not a value: {value}")


def _check_commands(rule: FindingRule) -> None:
    if "group_id" in rule.per:
        return
    if rule.names_tool_of_group():
        raise SchemaError(f"rule {rule.name}: {{tool}} needs findings by group_id")
    if rule.restore is not None:
        raise SchemaError(f"rule {rule.name}: restore needs findings by group_id")
