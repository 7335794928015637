"""The columns of Kafka's own tools, by tool, view and release.

Rows hold more than any one release prints; these are what is shown of them.

A saved output of one of Kafka's describing tools, read back into rows.

The tools pad columns with Java's `printf`: a column begins where its head begins, counted in
UTF-16 units, and each group may have widths of its own. A value that is wider than its column
pushes the rest of its line to the right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from schemas.releases import release_key

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"

FAMILIES = (CONSUMER, SHARE, STREAMS)
"""One for each of the tools kafka-consumer-groups, kafka-share-groups, kafka-streams-groups."""

FAMILY_OF = {
    "classic": CONSUMER,
    "simple": CONSUMER,
    "consumer": CONSUMER,
    "share": SHARE,
    "streams": STREAMS,
}
"""The tool that describes a type of group."""

OFFSETS, MEMBERS, STATE = "offsets", "members", "state"

HEADS = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "leader_epoch": "LEADER-EPOCH",
    "current_offset": "CURRENT-OFFSET",
    "start_offset": "START-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "offset_lag": "OFFSET-LAG",
    "consumer_id": "CONSUMER-ID",
    "group_instance_id": "GROUP-INSTANCE-ID",
    "member": "MEMBER",
    "host": "HOST",
    "process": "PROCESS",
    "client_id": "CLIENT-ID",
    "partitions": "#PARTITIONS",
    "assignment": "ASSIGNMENT",
    "assignments": "ASSIGNMENTS",
    "current_epoch": "CURRENT-EPOCH",
    "current_assignment": "CURRENT-ASSIGNMENT",
    "target_epoch": "TARGET-EPOCH",
    "target_assignment": "TARGET-ASSIGNMENT",
    "upgraded": "UPGRADED",
    "member_epoch": "MEMBER-EPOCH",
    "member_protocol": "MEMBER-PROTOCOL",
    "topology_epoch": "TOPOLOGY-EPOCH",
    "coordinator": "COORDINATOR (ID)",
    "assignment_strategy": "ASSIGNMENT-STRATEGY",
    "state": "STATE",
    "group_epoch": "GROUP-EPOCH",
    "target_assignment_epoch": "TARGET-ASSIGNMENT-EPOCH",
    "assignment_epoch": "ASSIGNMENT-EPOCH",
    "members": "#MEMBERS",
    "type": "TYPE",
    "protocol": "PROTOCOL",
}
"""Kafka's head of each column of ours."""

REMARK = {"remark": "REMARK"}
"""A column of ours alone, where a row cannot be told: why not."""


_CONTRACT = {
    "group": "group_id",
    "current_offset": "committed_offset",
    "offset_lag": "lag",
    "consumer_id": "member_id",
    "member": "member_id",
    "host": "client_host",
    "process": "process_id",
    "partitions": "partition_count",
    "current_epoch": "member_epoch",
    "target_epoch": "assignment_epoch",
    "target_assignment_epoch": "assignment_epoch",
    "group_epoch": "epoch",
    "assignment_strategy": "protocol",
    "members": "member_count",
}


class View(NamedTuple):
    """What is shown of which groups."""

    family: str
    what: str


KEYS: Mapping[View, tuple[str, ...]] = {
    View(CONSUMER, OFFSETS): ("group", "topic", "partition", "consumer_id"),
    View(CONSUMER, MEMBERS): ("group", "consumer_id"),
    View(SHARE, OFFSETS): ("group", "topic", "partition"),
    View(SHARE, MEMBERS): ("group", "consumer_id"),
    View(STREAMS, OFFSETS): ("group", "topic", "partition"),
    View(STREAMS, MEMBERS): ("group", "member"),
    **{View(family, STATE): ("group",) for family in FAMILIES},
}
"""What tells the rows of a view apart."""

ALWAYS, VERBOSE = 0, 1
SINCE_4_0, SINCE_4_1, BEFORE_4_0 = "4.0", "4.1", "-4.0"

_COLUMNS: Mapping[View, tuple[tuple[str, int, str | None], ...]] = {
    View(CONSUMER, OFFSETS): (
        ("group", ALWAYS, None),
        ("topic", ALWAYS, None),
        ("partition", ALWAYS, None),
        ("leader_epoch", VERBOSE, SINCE_4_0),
        ("current_offset", ALWAYS, None),
        ("log_end_offset", ALWAYS, None),
        ("lag", ALWAYS, None),
        ("consumer_id", ALWAYS, None),
        ("host", ALWAYS, None),
        ("client_id", ALWAYS, None),
    ),
    View(CONSUMER, MEMBERS): (
        ("group", ALWAYS, None),
        ("consumer_id", ALWAYS, None),
        ("group_instance_id", ALWAYS, None),
        ("host", ALWAYS, None),
        ("client_id", ALWAYS, None),
        ("partitions", ALWAYS, None),
        ("assignment", VERBOSE, BEFORE_4_0),
        ("current_epoch", VERBOSE, SINCE_4_0),
        ("current_assignment", VERBOSE, SINCE_4_0),
        ("target_epoch", VERBOSE, SINCE_4_0),
        ("target_assignment", VERBOSE, SINCE_4_0),
        ("upgraded", VERBOSE, SINCE_4_0),
    ),
    View(CONSUMER, STATE): (
        ("group", ALWAYS, None),
        ("coordinator", ALWAYS, None),
        ("assignment_strategy", ALWAYS, None),
        ("state", ALWAYS, None),
        ("group_epoch", VERBOSE, SINCE_4_0),
        ("target_assignment_epoch", VERBOSE, SINCE_4_0),
        ("members", ALWAYS, None),
    ),
    View(SHARE, OFFSETS): (
        ("group", ALWAYS, None),
        ("topic", ALWAYS, None),
        ("partition", ALWAYS, None),
        ("leader_epoch", VERBOSE, None),
        ("start_offset", ALWAYS, None),
        ("lag", ALWAYS, None),
    ),
    View(SHARE, MEMBERS): (
        ("group", ALWAYS, None),
        ("consumer_id", ALWAYS, None),
        ("host", ALWAYS, None),
        ("client_id", ALWAYS, None),
        ("partitions", ALWAYS, SINCE_4_1),
        ("member_epoch", VERBOSE, None),
        ("assignment", ALWAYS, None),
    ),
    View(SHARE, STATE): (
        ("group", ALWAYS, None),
        ("coordinator", ALWAYS, None),
        ("state", ALWAYS, None),
        ("group_epoch", VERBOSE, None),
        ("assignment_epoch", VERBOSE, None),
        ("members", ALWAYS, None),
    ),
    View(STREAMS, OFFSETS): (
        ("group", ALWAYS, None),
        ("topic", ALWAYS, None),
        ("partition", ALWAYS, None),
        ("current_offset", VERBOSE, None),
        ("leader_epoch", VERBOSE, None),
        ("log_end_offset", VERBOSE, None),
        ("offset_lag", ALWAYS, None),
    ),
    View(STREAMS, MEMBERS): (
        ("group", ALWAYS, None),
        ("target_assignment_epoch", VERBOSE, None),
        ("topology_epoch", VERBOSE, None),
        ("member", ALWAYS, None),
        ("member_protocol", VERBOSE, None),
        ("member_epoch", VERBOSE, None),
        ("process", ALWAYS, None),
        ("client_id", ALWAYS, None),
        ("assignments", ALWAYS, None),
    ),
    View(STREAMS, STATE): (
        ("group", ALWAYS, None),
        ("coordinator", ALWAYS, None),
        ("state", ALWAYS, None),
        ("group_epoch", VERBOSE, None),
        ("target_assignment_epoch", VERBOSE, None),
        ("members", ALWAYS, None),
    ),
}


def columns_of(view: View, release: str, *, verbose: bool) -> list[str]:
    """Return the columns that the tool of a release prints.

    Args:
        view: Of which groups, and what of them.
        release: As in 3.9 or 4.3.1.
        verbose: With what `--verbose` adds.
    """
    return [
        name
        for name, only, since in _COLUMNS[view]
        if (verbose or only == ALWAYS) and _is_of(release, since)
    ]


def contract_name(name: str, family: str) -> str:
    """Return what our tables call a column of Kafka's tools.

    JSON and CSV say the same word for the same thing in every command: that of the tables.
    """
    if name == "leader_epoch" and family != SHARE:
        return "committed_leader_epoch"
    return _CONTRACT.get(name, name)


def every_column(view: View) -> list[str]:
    """Return the columns that the tool of some release prints."""
    return [name for name, _, _ in _COLUMNS[view]]


def _is_of(release: str, since: str | None) -> bool:
    if since is None:
        return True
    number = release_key(release)
    if since.startswith("-"):
        return number < release_key(since[1:])
    return number >= release_key(since)


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
