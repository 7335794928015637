"""A saved output of Kafka's tool held against our rows.

Every row of either side counts. Cells that no dump shows at that instant are not compared, and
are counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from reports.describe.columns import HEADS, KEYS, View
from reports.describe.saved_output import SavedOutput
from reports.row_formats import Section, render

SHOWN_AT_MOST = 20
UNRECORDED = ("PreparingRebalance", "CompletingRebalance")
"""States of classic groups that leave no record."""

UNVALIDATED = "NotReady"
"""What 4.1 takes a streams group for that it has loaded, until a member's next heartbeat."""

AROUND = frozenset({"log_end_offset", "lag", "offset_lag", "coordinator"})
"""Columns that the internal topics alone do not tell: not compared where nothing else does."""

_OF_STATE = frozenset({"state", "assignment_strategy"})
_LISTS = frozenset({"assignment", "assignments", "current_assignment", "target_assignment"})
_IN_PARENTHESES = re.compile(r"([^(),\s]*)\(([^()]*)\)")
_OF_TOPIC = re.compile(r"([\w.-]+):(\d+(?:,\d+(?![\w.:-]))*)", re.ASCII)

_HEADS = {"row": "ROW", "column": "COLUMN", "kafka": "KAFKA'S TOOL", "here": "HERE"}

Row = Mapping[str, Any]


@dataclass
class Comparison:
    """What came out.

    Attributes:
        total: Rows of either side.
        equal: Those that are on both sides with equal cells.
        differing: Key, column, the tool's value, ours; column None where one side has no row.
        not_compared: How many cells of a column were left out, by the column's head.
        refused: Groups that the saved output lacks, as the tool cannot describe them, with why.
    """

    total: int = 0
    equal: int = 0
    differing: list[tuple[str, str | None, Any, Any]] = field(default_factory=list)
    not_compared: Counter[str] = field(default_factory=Counter)
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Whether every row is equal."""
        return self.equal == self.total


def compare(
    saved: SavedOutput, view: View, ours: Iterable[Row], around: frozenset[str] = AROUND
) -> Comparison:
    """Hold a saved output against the rows of the same view.

    Args:
        saved: What the tool printed.
        view: What it printed of which groups.
        ours: Rows with every column of the view.
        around: Columns that are compared only where we know them.
    """
    keys = [name for name in KEYS[view] if name in saved.columns]
    theirs_by_key = _by_key(saved.rows, keys)
    ours_by_key = _by_key(ours, keys)
    result = Comparison()
    for key in sorted({*theirs_by_key, *ours_by_key}):
        theirs, mine = theirs_by_key.get(key, []), ours_by_key.get(key, [])
        for place in range(max(len(theirs), len(mine))):
            result.total += 1
            pair = [rows[place] if place < len(rows) else None for rows in (theirs, mine)]
            _compare_rows(" ".join(key), pair, saved.columns, around, result)
    return result


def _by_key(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple("-" if row[name] is None else str(row[name]) for name in keys)].append(row)
    return found


def _compare_rows(
    key: str,
    pair: Sequence[Row | None],
    names: Sequence[str],
    around: frozenset[str],
    result: Comparison,
) -> None:
    theirs, ours = pair
    if theirs is None or ours is None:
        there = "a row", "no row"
        result.differing.append((key, None, *(there if ours is None else there[::-1])))
        return
    before = len(result.differing)
    for name in names:
        if name not in theirs:
            # Printed for groups with such members only; for others there is nothing to compare.
            continue
        if _is_unknown(name, theirs, ours, around):
            result.not_compared[HEADS[name]] += 1
        elif _value(name, theirs[name]) != _value(name, ours[name]) and not _are_nameless(
            name, theirs[name], ours[name]
        ):
            result.differing.append((key, HEADS[name], theirs[name], ours[name]))
    result.equal += len(result.differing) == before


def _is_unknown(name: str, theirs: Row, ours: Row, around: frozenset[str]) -> bool:
    """Return whether nothing in a dump tells what the tool printed."""
    if name in around and ours[name] is None:
        return theirs[name] is not None
    if name not in _OF_STATE:
        return False
    is_rebalancing = theirs.get("state") in UNRECORDED and ours["group_type"] == "classic"
    return is_rebalancing or (name == "state" and ours["state"] == UNVALIDATED)


def _value(name: str, value: object) -> object:
    """Return what a cell means: blanks and the order in lists mean nothing."""
    if value is None or value == "":
        return None
    text = str(value).rstrip(" ")
    if name == "coordinator":
        return " ".join(text.split())
    if name in _LISTS:
        given = _partitions(text) if name != "assignments" else []
        return given or sorted(re.split(r"[;,]?\s+|[;,](?=[^\d\]])", text.strip().rstrip(";")))
    return text


def _partitions(text: str) -> list[str]:
    """Return each partition of a list by itself.

    Before 4.0 the tools write `topic(0,1)`, since then `topic:0,1`, that of 4.0 for share groups
    `topic:0,topic:1`: a tool of one release may have asked a broker of another.
    """
    lists = _OF_TOPIC.findall(_IN_PARENTHESES.sub(r"\1:\2", text))
    return sorted(f"{topic}:{number}" for topic, numbers in lists for number in numbers.split(","))


def _are_nameless(name: str, theirs: object, ours: object) -> bool:
    """Return whether lists are equal but for topics' names, which 3.8 and 3.9 leave out."""
    if name != "assignment" or theirs is None or ours is None:
        return False
    lists = [_IN_PARENTHESES.findall(str(each)) for each in (theirs, ours)]
    if not lists[0] or any(topic for topic, _ in lists[0]):
        return False
    numbers = [sorted(sorted(each.split(",")) for _, each in found) for found in lists]
    return numbers[0] == numbers[1]


def render_comparison(result: Comparison, output_format: str, said: Mapping[str, Any]) -> str:
    """Return the verdict, and the rows that differ: in text the first of them.

    Args:
        result: What came out.
        output_format: ``text``, ``json``, ``csv`` or ``markdown``.
        said: What the JSON object has beside.
    """
    differing = pa.Table.from_pylist(
        [
            {
                name: None if cell is None else str(cell)
                for name, cell in zip(_HEADS, row, strict=True)
            }
            for row in result.differing
        ],
        pa.schema([(name, pa.string()) for name in _HEADS]),
    )
    if output_format == "json":
        counts = {
            "equal": result.equal,
            "total": result.total,
            "not_compared": dict(result.not_compared),
            "groups_not_compared": dict(result.refused),
        }
        return render([Section(differing, _HEADS)], output_format, {**said, **counts})
    if output_format == "csv":
        return render([Section(differing, _HEADS)], output_format, said)
    lines = [f"{result.equal:,} of {result.total:,} rows equal"]
    if result.not_compared:
        cells = ", ".join(f"{head} {count:,}" for head, count in result.not_compared.items())
        lines.append(f"cells that no dump shows at that instant, not compared: {cells}")
    lines += [
        f"group {group!r} is not compared: {why}" for group, why in sorted(result.refused.items())
    ]
    if result.differing:
        first = Section(differing.slice(0, SHOWN_AT_MOST), _HEADS)
        lines += ["", render([first], output_format, said)]
        if len(result.differing) > SHOWN_AT_MOST:
            lines.append(f"and {len(result.differing) - SHOWN_AT_MOST:,} more")
    return "\n".join(lines)
