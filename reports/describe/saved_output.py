"""A saved output of one of Kafka's describing tools, read back into rows.

The tools pad columns with Java's `printf`: a column begins where its head begins, counted in
UTF-16 units, and each group may have widths of its own. A value that is wider than its column
pushes the rest of its line to the right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from reports.describe.columns import (
    CONSUMER,
    HEADS,
    MEMBERS,
    OFFSETS,
    SHARE,
    STATE,
    STREAMS,
    View,
    every_column,
)

_HEAD = re.compile(r"COORDINATOR \(ID\)|\S+")
_NAMES = {head: name for name, head in HEADS.items()}
_COMMAND = re.compile(r"\$ kafka-(\w+)-groups .*--group '(.*)'(?: --\w+)*$")
_STDERR = "--- stderr ---"
_ERROR = "Error: "
_PAD = " "
_GAP = _PAD.encode("utf-16-le")
_BREAKS = {ord("\n"): "\ue000", ord("\r"): "\ue001"}
"""Line breaks in names, and letters of private use that stand for them: as wide to Java."""

Row = dict[str, str | None]


@dataclass
class SavedOutput:
    """What a tool printed.

    Attributes:
        rows: By column; None is a hyphen or nothing.
        columns: All that some row has.
        errors: What the tool could not do.
        tool: The family of groups it describes, where the text names it.
        groups: Those that the text says it was asked for, by lines `$ kafka-... --group 'NAME'`.
        is_old: The tool prints no column GROUP, as those of old releases.
    """

    rows: list[Row] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    tool: str | None = None
    groups: list[str] = field(default_factory=list)
    is_old: bool = False

    @property
    def views(self) -> list[View]:
        """What may have been printed of which groups, by the columns; nothing where none were.

        Some columns are alike: those of states of share and streams groups, and those of members
        of share groups and of consumers before 4.0. The groups' types tell these apart.
        """
        there = set(self.columns)
        if not there:
            return []
        what = STATE if "state" in there else OFFSETS if "topic" in there else MEMBERS
        families = [self.tool] if self.tool else [CONSUMER, SHARE, STREAMS]
        known = {family: set(every_column(View(family, what))) for family in families}
        return [View(family, what) for family in families if there <= known[family]]

    @property
    def group_names(self) -> set[str]:
        """The groups that have rows; the empty name where a row has none."""
        return {row["group"] or "" for row in self.rows}

    @property
    def topic_names(self) -> set[str]:
        """The topics that have rows; the empty name where a row has none."""
        return {row["topic"] or "" for row in self.rows if "topic" in row}

    def only(self, groups: Collection[str], topics: Collection[str] | None = None) -> SavedOutput:
        """Return the same with the rows of some groups, and of some topics, or of all."""
        return replace(
            self,
            rows=[
                row
                for row in self.rows
                if (row["group"] or "") in groups
                and (topics is None or "topic" not in row or (row["topic"] or "") in topics)
            ],
        )


def read_saved_output(text: str, names: Iterable[str] = ()) -> SavedOutput:
    """Read what kafka-consumer-groups, -share-groups or -streams-groups printed.

    Args:
        text: Of any number of groups; lines `$ kafka-... --group 'NAME'` may name the group for
            releases that print no such column.
        names: Of groups: one with a line break would tear its row apart, one that ends in blanks
            looks like its padding.
    """
    known = list(names)
    torn = {name: name.translate(_BREAKS) for name in known if name != name.translate(_BREAKS)}
    for name, whole in torn.items():
        text = text.replace(name, whole)
        # Whoever saved the text may have taken a carriage return for the end of a line.
        if (saved := _as_saved(name)) not in torn:
            text = text.replace(saved, whole)
    found = _read(text)
    mended = {**_padded(known), **{whole: name for name, whole in torn.items()}}
    for row in found.rows:
        group = row.setdefault("group", None)
        row["group"] = mended.get(group, group) if group else group
    return found


def _as_saved(name: str) -> str:
    return name.replace("\r\n", "\n").replace("\r", "\n")


def _padded(names: Sequence[str]) -> dict[str, str]:
    """Return the names that end in blanks, by what is left of them in a padded column."""
    exact = set(names)
    ends = {name.rstrip(_PAD): name for name in names if name != name.rstrip(_PAD)}
    return {short: name for short, name in ends.items() if short not in exact}


def _read(text: str) -> SavedOutput:
    found = SavedOutput()
    group: str | None = None
    starts: list[tuple[str, int]] = []
    for line in _lines(text):
        command = _COMMAND.match(line)
        if command:
            found.tool, group, starts = command[1], command[2], []
            found.groups.append(group)
        elif line.startswith(_ERROR):
            found.errors.append(line.removeprefix(_ERROR))
        elif _is_head(line):
            starts = [
                (_NAMES[each[0]], _units(line[: each.start()])) for each in _HEAD.finditer(line)
            ]
            found.columns += [name for name, _ in starts if name not in found.columns]
        elif starts and line.strip():
            row = _row(line, starts)
            if group is not None:
                row.setdefault("group", group)
            found.rows.append(row)
        else:
            starts = starts if line.strip() else []
    if group is not None and "group" not in found.columns:
        found.columns.insert(0, "group")
        found.is_old = True
    return found


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of standard output; what follows as standard error is left out."""
    is_error = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if line == _STDERR:
            is_error = True
        elif line.startswith("$ "):
            is_error = False
        if not is_error:
            yield line


def _is_head(line: str) -> bool:
    words = _HEAD.findall(line)
    return len(words) > 1 and all(word in _NAMES for word in words)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _row(line: str, starts: Sequence[tuple[str, int]]) -> Row:
    units = [
        line.encode("utf-16-le", "surrogatepass")[place : place + 2]
        for place in range(0, 2 * _units(line), 2)
    ]
    widths = [after - start for (_, start), (_, after) in pairwise(starts)]
    row: Row = {}
    begin = starts[0][1]
    for (name, _), width in zip(starts, [*widths, len(units)], strict=True):
        end = begin + width
        # The last place of a column is a gap, unless its value is too long for it.
        while end < len(units) and units[end - 1] != _GAP:
            end += 1
        value = b"".join(units[begin:end]).decode("utf-16-le", "replace").rstrip(_PAD)
        row[name] = None if value in ("", "-") else value
        begin = end
    return row
