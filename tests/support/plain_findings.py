"""Findings made one at a time, of rows that are dictionaries: slow, and plain to read."""

from __future__ import annotations

import hashlib
import json
import shlex
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa

from analytics.questions.findings.advice import Phrasing, with_tool
from analytics.questions.findings.evidence import (
    EVIDENCE,
    RECORD_PREFIX,
    KnownRecords,
    with_records,
)
from analytics.questions.findings.found import FINDINGS, in_order
from schemas.finding_rules import FindingRule, RestoreColumns

_MOST_RECORDS: Final = 3
_MOST_NAMES: Final = 3
_MOST_GROUPS: Final = 25
_TAKE: Final[Mapping[str, Callable[[list[Any]], Any]]] = {"sum": sum, "min": min, "max": max}
_KEY: Final = ("group_id", "topic", "partition")
_NOT_KNOWN: Final = "not known"
_PLACE: Final = ("group_id", "topic", "partition")
_BEFORE: Final = timedelta(milliseconds=1)
_COMMIT_TO_APPEND: Final = timedelta(seconds=1)
"""A commit is stamped before it is appended; a cut at an instant goes by the append."""

Row = Mapping[str, Any]


def plain_findings(
    rule: FindingRule,
    chosen: pa.Table,
    phrasing: Phrasing,
    asked_of: Mapping[str, str],
    types: Mapping[str, str],
    known_records: KnownRecords | None = None,
) -> pa.Table:
    """Return the findings of a rule.

    Args:
        rule: The rule.
        chosen: Rows, of all of which it is.
        phrasing: How bytes and durations are said.
        asked_of: `input` and `dump` of suggestions.
        types: Of groups.
        known_records: Where the records are found that the rows do not have.
    """
    rows = with_records(rule, chosen, known_records).to_dicts()
    found = list(_of_rule(rule, rows, phrasing, asked_of, types))
    return in_order(pa.Table.from_pylist(found, schema=FINDINGS))


def _of_rule(
    rule: FindingRule,
    rows: list[dict[str, Any]],
    phrasing: Phrasing,
    asked_of: Mapping[str, str],
    types: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    commands = {} if rule.restore is None else restore_commands(rule.restore, rows)
    together: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        together.setdefault(tuple(row[name] for name in rule.per), []).append(row)
    for key, mine in together.items():
        found = dict(zip(rule.per, key, strict=True))
        restoring = None if rule.restore is None else commands.get(found["group_id"])
        advice = _Advice(asked_of, restoring, types.get(found.get("group_id", "")))
        yield _finding(rule, found, mine, phrasing, advice)


class _Advice(NamedTuple):
    """What a suggestion needs besides a finding's rows."""

    asked_of: Mapping[str, str]
    restoring: Sequence[RestoreCommand] | None
    group_type: str | None

    def worded(self, rule: FindingRule, values: Mapping[str, WordedValue]) -> str:
        """Return the command of a finding; where it takes several, one after the other."""
        if rule.restore is not None and self.restoring:
            return "; ".join(
                _worded_command(rule.suggestion, values, {**self.asked_of, **each.values()})
                for each in self.restoring
            )
        command = rule.suggestion if rule.restore is None else rule.restore.otherwise
        command, of_tool = with_tool(command, self.group_type)
        return _worded_command(command, values, {**self.asked_of, **of_tool})


def _finding(
    rule: FindingRule, key: Row, rows: list[Row], phrasing: Phrasing, advice: _Advice
) -> dict[str, Any]:
    said = {
        # The number of a partition is a name.
        **{name: WordedValue(str(value)) for name, value in key.items()},
        **{
            name: WordedValue(_aggregated(each["take"], rows, each.get("column")), each.get("as"))
            for name, each in rule.values.items()
        },
        **{
            name: WordedValue(
                int(each.value) if each.value == int(each.value) else each.value, None
            )
            for name, each in rule.thresholds.items()
        },
    }
    since = rule.since
    return {
        "finding_id": _finding_id(rule.name, key),
        "rule": rule.name,
        "severity": rule.severity,
        "object_type": rule.object_type,
        **{name: key.get(name) for name in _KEY},
        "since": None if since is None else _aggregated(since["take"], rows, since["column"]),
        "message": _worded(rule.message, said, phrasing),
        "suggestion": advice.worded(rule, said),
        "evidence": _evidence(rows),
    }


def _finding_id(rule: str, key: Row) -> str:
    """Return an id that is the same whenever a rule finds the same object."""
    text = json.dumps([rule, *map(str, key.values())], ensure_ascii=False)
    return f"{rule}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _aggregated(take: str, rows: list[Row], column: str | None) -> Any:
    """Return one value for those that rows have in a column; None where they have none.

    Args:
        take: One of `schemas.finding_rules.TAKES`; `names` are the distinct ones, in words,
            `numbers` all of them with commas between.
        rows: The rows of a finding.
        column: Which column; `count` needs none.
    """
    if take == "count":
        return len(rows)
    values = [row[column] for row in rows if column is not None and row[column] is not None]
    if not values:
        return None
    if take == "names":
        names = list(dict.fromkeys(map(str, values)))
        more = len(names) - _MOST_NAMES
        return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    if take == "numbers":
        return ",".join(map(str, sorted(set(values))))
    return values[0] if take == "first" else _TAKE[take](values)


def _evidence(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the first records of rows, each once; a log alone where no record is known."""
    found: list[dict[str, Any]] = []
    for each in map(_record_of, rows):
        if each["partition"] is not None and each not in found:
            found.append(each)
        if len(found) == _MOST_RECORDS:
            break
    return found


def _record_of(row: Row) -> dict[str, Any]:
    return {name: row[RECORD_PREFIX + name] for name in EVIDENCE}


class WordedValue(NamedTuple):
    """A value, and how it is said: by a name of `Phrasing`, or as it is."""

    value: Any
    how: str | None = None


def _worded(sentence: str, values: Mapping[str, WordedValue], phrasing: Phrasing) -> str:
    """Return a sentence with the values of its names.

    Args:
        sentence: With names in braces; `{offsets:offset}` is a number and its noun.
        values: By name.
        phrasing: How numbers are said that are no plain ones.
    """
    return _Sentence(phrasing).vformat(sentence, (), values)


class _Sentence(string.Formatter):
    """Puts values into sentences; what follows a colon is the noun of a number, or `one|many`."""

    def __init__(self, phrasing: Phrasing) -> None:
        self._says = phrasing

    def format_field(self, value: WordedValue, format_spec: str) -> str:
        if not format_spec:
            return _text(value, self._says)
        number = "an unknown number of" if value.value is None else f"{value.value:,}"
        if "|" in format_spec:
            one, many = format_spec.split("|")
            return (one if value.value == 1 else many).replace("#", number)
        return f"{number} {format_spec}{'' if value.value == 1 else 's'}"


def _worded_command(
    command: str, values: Mapping[str, WordedValue], arguments: Mapping[str, str]
) -> str:
    """Return a command in which no value can do more than be an argument.

    Args:
        command: With names in braces.
        values: Values by name.
        arguments: By name what is quoted for a shell already.
    """
    quoted = {
        name: shlex.quote(each.value) if isinstance(each.value, str) else _plain(each.value)
        for name, each in values.items()
    }
    return command.format_map({**quoted, **arguments})


def _text(worded: WordedValue, phrasing: Phrasing) -> str:
    value, how = worded
    if value is None:
        return _NOT_KNOWN
    if how is not None and how in phrasing:
        return str(phrasing[how](value))
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)


class RestoreCommand(NamedTuple):
    """What the wording of a rule needs of one command."""

    instant: datetime
    groups: tuple[str, ...]
    number: int
    """Of those with the same instant."""

    def values(self) -> dict[str, str]:
        """Return the values of `{groups}`, `{before}` and `{folder}`, as a shell takes them."""
        before = self.instant.astimezone(UTC).isoformat(timespec="milliseconds")
        before = before.replace("+00:00", "Z")
        number = f"-{self.number}" if self.number > 1 else ""
        return {
            "groups": " ".join(f"--group {shlex.quote(each)}" for each in self.groups),
            "before": before,
            "folder": f"restore-{before.replace(':', '')}{number}",
        }


class _Span(NamedTuple):
    """The instants as of which an offset can be given back."""

    group: str
    start: datetime
    end: datetime


def restore_commands(
    columns: RestoreColumns, rows: Iterable[Row]
) -> dict[str, list[RestoreCommand]]:
    """Return for each group the commands that give back the last offset lost on each partition.

    Args:
        columns: Where a rule's table has the offset, its commit and its loss.
        rows: Rows that a rule is about; those without an offset, or without a time at which it was
            committed or lost, have nothing that a command could give back. (The start offset of a
            share group was never committed, and `restore` gives none back.)
    """
    commands: dict[str, list[RestoreCommand]] = {}
    spans = sorted(_spans(columns, rows), key=attrgetter("end", "group"))
    for instant, served in groupby(_stabbed(spans), key=lambda each: each[0]):
        groups = sorted({span.group for _, span in served})
        for first in range(0, len(groups), _MOST_GROUPS):
            some = tuple(groups[first : first + _MOST_GROUPS])
            command = RestoreCommand(instant, some, first // _MOST_GROUPS + 1)
            for group in some:
                commands.setdefault(group, []).append(command)
    return commands


def _spans(columns: RestoreColumns, rows: Iterable[Row]) -> Iterator[_Span]:
    last: dict[tuple[Any, ...], _Span] = {}
    for row in rows:
        lost_at = (row[columns.not_before] if columns.not_before else None) or row[columns.lost_at]
        committed_at = row[columns.committed_at]
        if row[columns.offset] is None or committed_at is None or lost_at is None:
            continue
        # Times of records are whole milliseconds.
        end = lost_at.replace(microsecond=lost_at.microsecond // 1000 * 1000) - _BEFORE
        start = min(committed_at + _COMMIT_TO_APPEND, end)
        place = tuple(row[name] for name in _PLACE)
        if place not in last or last[place].end < end:
            last[place] = _Span(row["group_id"], start, end)
    yield from last.values()


def _stabbed(spans: Iterable[_Span]) -> Iterator[tuple[datetime, _Span]]:
    """Yield each span with the instant that serves it; spans are given by their ends."""
    instant: datetime | None = None
    for span in spans:
        if instant is None or span.start > instant:
            instant = span.end
        yield instant, span
