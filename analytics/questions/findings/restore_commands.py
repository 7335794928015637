"""Commands that give back what a loss took: the fewest that name an instant before each loss.

An offset that was lost can be given back as of any instant from its last commit on until it was
lost. Where the spans of several offsets have an instant in common, one command serves them all,
whatever group they are of: the instants are chosen as those that stab all spans (the greedy choice
of the earliest end is the smallest one).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from schemas.finding_rules import RestoreColumns

MOST_GROUPS: Final = 25
"""Of one command: a longer one is hard to read and to check."""

_PLACE: Final = ("group_id", "topic", "partition")
_BEFORE: Final = timedelta(milliseconds=1)
_COMMIT_TO_APPEND: Final = timedelta(seconds=1)
"""A commit is stamped before it is appended; a cut at an instant goes by the append."""

Row = Mapping[str, Any]


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
        for first in range(0, len(groups), MOST_GROUPS):
            some = tuple(groups[first : first + MOST_GROUPS])
            command = RestoreCommand(instant, some, first // MOST_GROUPS + 1)
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
