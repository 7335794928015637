"""Findings by rule, the worst first; what is accepted, and what is gone since another audit.

A finding says where the records are that show it, and how Kafka's own tool prints them.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.compute as pc

from reports.layout.section import first_of_each
from reports.page.model import Cell, Finding, Record, Rule
from reports.page.rows import (
    LONGEST_SENTENCE,
    group_anchor,
    harmless,
    moment,
    name_cut,
    rule_anchor,
)
from reports.page.workspace_tables import Condition, WorkspaceTables, is_one_of
from schemas import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    table,
)
from schemas.finding_rules import SEVERITIES, finding_rules
from schemas.gaps import Template

if TYPE_CHECKING:
    from schemas.manifest import Manifest, PartitionEntry

MOST_OF_A_RULE: Final = 40
MOST: Final = 400
MOST_GONE: Final = 100
GONE: Final = "gone"
Row = Mapping[str, Any]

_DECODERS: Final = {
    CONSUMER_OFFSETS: "--offsets-decoder",
    TRANSACTION_STATE: "--transaction-log-decoder",
    SHARE_GROUP_STATE: "--share-group-state-decoder",
    CLUSTER_METADATA: "--cluster-metadata-decoder",
}


def rules_found(read: WorkspaceTables, stories: frozenset[str]) -> tuple[Rule, ...]:
    """Return the rules that found something, the worst first, with the first of their findings.

    Args:
        read: `findings`, `applied_rules`, `finding_changes`.
        stories: Groups that have a story.
    """
    known = {each.name: each for each in finding_rules()}
    counts = _column(read, "applied_rules", "rule", "findings")
    by_rule, changes = _first_of_each_rule(read)
    segments = Segments(read.manifest)
    room = MOST
    found = []
    for name in sorted(by_rule, key=lambda each: (_rank(by_rule[each].rows), each)):
        rows = by_rule[name].rows[: min(MOST_OF_A_RULE, max(room, 1))]
        room -= len(rows)
        rule = known.get(name)
        count = counts.get(name, by_rule[name].how_many)
        headline = rule.headline if rule else name.replace("_", " ")
        found.append(
            Rule(
                anchor=rule_anchor(name),
                name=name,
                severity=rows[0]["severity"],
                question=rule.question if rule else name.replace("_", " "),
                headline=Template(headline).filled({"count": count}),
                count=count,
                shown=tuple(_finding(row, changes, segments, stories) for row in rows),
                why=rule.why if rule else "",
            )
        )
    return tuple(found)


class _OfRule(NamedTuple):
    """The first findings of a rule, and how many there are."""

    rows: Sequence[Row]
    how_many: int


def _first_of_each_rule(read: WorkspaceTables) -> tuple[dict[str, _OfRule], dict[str, str]]:
    """Return by rule what is shown of it, and of these findings how they changed: no others.

    There may be any number of findings; only those that a page has room for become Python.
    """
    counts: Counter[str] = Counter()
    for piece in read.scan("findings", ["rule"]):
        values = piece["rule"].value_counts().to_pylist()
        counts.update({each["values"]: each["counts"] for each in values})
    of_rules = partial(first_of_each, of="rule", most=MOST_OF_A_RULE)
    columns = [each.name for each in table("findings").columns]
    first = read.folded("findings", of_rules, ["rule"], columns)
    rows_of: dict[str, list[Row]] = {}
    for row in first.select(columns).to_pylist():
        rows_of.setdefault(row["rule"], []).append(row)
    is_shown = is_one_of("finding_id", first["finding_id"].to_pylist())
    changes = _column(read, "finding_changes", "finding_id", "change", is_shown)
    return {name: _OfRule(rows_of[name], count) for name, count in counts.items()}, changes


def _rank(rows: Sequence[Row]) -> int:
    return SEVERITIES.index(rows[0]["severity"])


def _column(
    read: WorkspaceTables, name: str, key: str, value: str, where: Condition | None = None
) -> dict[str, Any]:
    rows = read.rows(name, [key, value], where)
    return dict(zip(rows[key].to_pylist(), rows[value].to_pylist(), strict=True))


def _finding(
    row: Row, changes: Mapping[str, str], segments: Segments, stories: frozenset[str]
) -> Finding:
    whole = harmless(row["message"])
    short = name_cut(row["message"], LONGEST_SENTENCE)
    group = row["group_id"]
    return Finding(
        anchor=f"finding-{row['finding_id']}",
        finding_id=row["finding_id"],
        message=short,
        whole="" if short == whole else whole,
        since="" if row["since"] is None else moment(row["since"]),
        change=changes.get(row["finding_id"], "").replace("_", " "),
        suggestion=harmless(row["suggestion"] or ""),
        href=f"#{group_anchor(group)}" if group in stories else "",
        records=_records(row["evidence"], segments),
    )


def _records(evidence: Sequence[Row], segments: Segments) -> tuple[Record, ...]:
    return tuple(each for one in evidence for each in segments.records_of(one))


def gone(read: WorkspaceTables) -> tuple[Cell, ...]:
    """Return what an earlier audit found and this one does not."""
    cells: list[Cell] = []
    count = 0
    for piece in read.in_order("finding_changes", ["message", "severity", "change"]):
        rows = piece.filter(pc.equal(piece["change"], GONE))
        count += rows.num_rows
        cells += [
            Cell(name_cut(row["message"], LONGEST_SENTENCE), tone=row["severity"])
            for row in rows.slice(0, MOST_GONE - len(cells)).to_pylist()
        ]
    more = count - len(cells)
    return (*cells, *([Cell(f"{more:,} more in evaluations/finding_changes")] if more else []))


class Segments:
    """The files of a dump by what they hold, as the manifest has them."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def records_of(self, evidence: Row) -> Iterator[Record]:
        """Yield where a record is; one that may be on either of two lines is yielded twice.

        Args:
            evidence: Of a finding: `topic`, `partition`, `offset`, and as far as they are known
                `copy`, `segment`, `batch_position`.
        """
        topic, partition, offset = (evidence[name] for name in ("topic", "partition", "offset"))
        if topic is None or partition is None or offset is None:
            return
        place = f"{topic}-{partition}@{offset}"
        if evidence["segment"] is not None and evidence["copy"] is not None:
            position = evidence["batch_position"]
            at = f"{evidence['copy']}: {evidence['segment']}"
            where = at if position is None else f"{at}, batch at byte {position}"
            command = self._command(evidence["copy"], evidence["segment"], topic, offset)
            yield Record(harmless(place), harmless(where), command)
            return
        copies = self._copies_of(topic, partition, offset)
        for copy, segment in copies:
            both = "; the lines of both copies part before it" if len(copies) > 1 else ""
            where = f"{copy}: {segment}{both}"
            yield Record(
                harmless(place), harmless(where), self._command(copy, segment, topic, offset)
            )
        if not copies:
            yield Record(harmless(place), "", "")

    def _copies_of(self, topic: str, partition: int, offset: int) -> list[tuple[str, str]]:
        """Return the segment with a record on the line in force, and on one that parted before."""
        found = []
        for each in self._partitions.get((topic, partition), ()):
            copy = each["copy"]
            if copy is None:
                continue
            parted = self._parted.get((topic, partition, copy))
            if each.get("is_leading", True) or (parted is not None and parted <= offset):
                segment = _segment_with(each, offset)
                if segment is not None:
                    found.append((copy, segment))
        return found

    def _command(self, copy: str, segment: str, topic: str, offset: int) -> str:
        folder = self._folders.get(copy, copy)
        path = shlex.quote(f"{folder}/{segment}")
        decoder = _DECODERS.get(topic, "--print-data-log")
        return harmless(
            f"kafka-dump-log.sh --files {path} --deep-iteration {decoder} "
            f"| grep -w 'offset: {offset}'"
        )

    @cached_property
    def _partitions(self) -> dict[tuple[str, int], list[PartitionEntry]]:
        found: dict[tuple[str, int], list[PartitionEntry]] = {}
        for each in self._manifest["partitions"]:
            found.setdefault((each["topic"], each["partition"]), []).append(each)
        return found

    @cached_property
    def _parted(self) -> dict[tuple[str, int, str], int]:
        return {
            (each["topic"], each["partition"], each["copy"]): each["diverges_at"]
            for each in self._manifest.get("divergences", ())
        }

    @cached_property
    def _folders(self) -> dict[str, str]:
        return {
            each["name"]: each["log_dirs"][0]
            for each in self._manifest["copies"]
            if len(each.get("log_dirs", ())) == 1
        }


def _segment_with(partition: PartitionEntry, offset: int) -> str | None:
    """Return the name of the segment in which an offset is."""
    end = partition.get("end_offset")
    if not end or offset >= end:
        return None
    begins = {
        int(stem): each["name"]
        for each in partition.get("files", ())
        if (stem := each["name"].rpartition("/")[2].removesuffix(".log")).isdecimal()
    }
    before = [each for each in begins if each <= offset]
    return begins[max(before)] if before else None
