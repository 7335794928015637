"""The answer of `trend` as text, JSON, CSV and Markdown.

What people read first of a trend: what is new, what got worse, when a limit is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import signed, with_times_as_text, with_values
from reports.layout.output_format import OutputFormat
from reports.layout.section import LongSection, Rows, as_main, raw_section, table_section
from reports.plain_text import count, duration, printable, size_of, wrapped
from reports.row_formats import Section, Text, rendered
from reports.verdict import as_text
from schemas import table
from schemas.finding_rules import INFO, SEVERITIES
from schemas.shown import SIGNS_OF_BOUNDS

MOST: Final = 5
"""So many lines of each kind are shown."""
RUNS, RULES, LAG, DISKS, RETENTION = (
    "trend_runs",
    "trend_rules",
    "trend_lag",
    "trend_disks",
    "trend_retention",
)
_WORSE: Final = "worse"
_NEW: Final = "new"
_NOT_THERE_NOW: Final = "gone"
_CANNOT_TELL: Final = "cannot_tell"
_NO_LIMIT: Final = "for no partition is it known when retention reaches it"
_NO_OTHER_LIMIT: Final = "for no other partition is it known when retention reaches it"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A sentence, and how severe what it says is: a severity, "good", or nothing."""

    text: str
    severity: str = ""


@dataclass(frozen=True)
class ClusterLines:
    """What is said of a cluster.

    Attributes:
        cluster: Its name.
        instants: Of which instants its last runs are.
        new: What is new since the run before.
        worse: What got worse.
        improved: What is gone, or got better.
        limits: When a disk or a retention is reached.
        cannot_tell: Why some of this cannot be told.
    """

    cluster: str
    instants: str
    new: Sequence[Line] = ()
    worse: Sequence[Line] = ()
    improved: Sequence[Line] = ()
    limits: Sequence[Line] = ()
    cannot_tell: Sequence[Line] = field(default_factory=tuple)


def lines_of(
    tables: Mapping[str, Rows], figures: Mapping[str, Mapping[str, Any]]
) -> list[ClusterLines]:
    """Return what is said of each cluster.

    Args:
        tables: Of a trend, by the names of their contracts.
        figures: Of the answer, by cluster.
    """
    small = {name: tables[name].whole() for name in (RUNS, RULES, LAG, DISKS, RETENTION)}
    clusters = dict.fromkeys(small[RUNS]["cluster"].to_pylist())
    return [
        _lines_of_cluster(
            {name: _of(rows, cluster) for name, rows in small.items()}, figures.get(cluster, {})
        )
        for cluster in clusters
    ]


def _of(rows: pa.Table, cluster: str) -> pa.Table:
    return rows.filter(pc.equal(rows["cluster"], cluster))


def _lines_of_cluster(tables: Mapping[str, pa.Table], figures: Mapping[str, Any]) -> ClusterLines:
    runs = tables[RUNS].to_pylist()
    last, before = runs[-1], runs[-2] if len(runs) > 1 else None
    rules = _of_run(tables[RULES], last)
    disks = tables[DISKS].to_pylist()
    groups = figures.get("groups")
    return ClusterLines(
        last["cluster"],
        _instants(runs),
        _worst([*_changed_rules(rules, _NEW), *_changed_groups(groups, _NEW)]),
        _worst(
            [
                *_changed_rules(rules, _WORSE),
                *_fallen(last, before, _of_run(tables[LAG], last)),
                *_expired(last),
            ]
        ),
        _worst([*_better_rules(rules), *_changed_groups(groups, _NOT_THERE_NOW)]),
        [*_full_disks(disks), *_reached(tables[RETENTION].to_pylist(), before, figures)],
        list(_open(last, before, rules, figures)),
    )


def _instants(runs: Sequence[Row]) -> str:
    last = as_text(runs[-1]["as_of"])
    if len(runs) == 1:
        return f"one run, of {last}"
    return f"{count(len(runs), 'run')}; the last of {last}, the one before of " + str(
        as_text(runs[-2]["as_of"])
    )


def _of_run(rows: pa.Table, run: Row) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.filter(pc.equal(rows["as_of"], run["as_of"])).to_pylist()
    return found


def _worst(lines: Iterable[Line]) -> list[Line]:
    """Return the first lines, the most severe before others, and how many more there are."""
    rank = {each: number for number, each in enumerate(SEVERITIES)}
    ordered = sorted(lines, key=lambda line: rank.get(line.severity, len(rank)))
    more = len(ordered) - MOST
    return [*ordered[:MOST], *([Line(f"and {more:,} more below")] if more > 0 else [])]


def _changed_rules(rules: Sequence[Row], change: str) -> Iterator[Line]:
    for each in rules:
        if each["change"] != change:
            continue
        example = f": {each['message']}" if each["message"] else ""
        if change == _NEW:
            text = f"{each['rule']}, {count(each['new'], 'finding')}{example}"
        else:
            numbers = f"{each['earlier_findings']:,} before, {each['findings']:,} now"
            text = f"{each['rule']}, {numbers}{example}"
        yield Line(text, each["severity"])


def _better_rules(rules: Sequence[Row]) -> Iterator[Line]:
    for each in rules:
        if each["change"] == _NOT_THERE_NOW:
            number = count(each["earlier_findings"], "finding")
            yield Line(f"{each['rule']}, {number} before, none now", "good")
        elif each["change"] == "better":
            yield Line(
                f"{each['rule']}, {each['earlier_findings']:,} before, {each['findings']:,} now",
                "good",
            )


def _changed_groups(groups: Mapping[str, int] | None, change: str) -> Iterator[Line]:
    number = (groups or {}).get(change, 0)
    if number:
        word = "groups that were not there" if change == _NEW else "groups that are gone"
        one = "group that was not there" if change == _NEW else "group that is gone"
        yield Line(count(number, one, word))


def _fallen(last: Row, before: Row | None, lags: Sequence[Row]) -> Iterator[Line]:
    if before is not None and (last["lag_per_day"] or 0) > 0:
        numbers = f"{_bounded(before, 'lag')} before, {_bounded(last, 'lag')} now"
        yield Line(f"lag of all groups: {numbers} ({_a_day(last, 'lag_per_day')})", INFO)
    grown = [each for each in lags if (each["grown"] or 0) > 0]
    for each in sorted(grown, key=lambda row: (-row["grown"], row["group_id"]))[:3]:
        numbers = f"{_bounded(each, 'earlier_lag')} before, {_bounded(each, 'lag')} now"
        is_rate = each["grown_per_day"] is not None
        rate = f" ({_a_day(each, 'grown_per_day', 'grown')})" if is_rate else ""
        yield Line(f"lag of {each['group_id']}: {numbers}{rate}", INFO)


def _a_day(row: Row, name: str, bounded: str | None = None) -> str:
    sign = SIGNS_OF_BOUNDS.get(row[f"{bounded or name}_bound"], "")
    return f"{sign}{row[name]:+,.0f} a day"


def _bounded(row: Row, name: str) -> str:
    sign = SIGNS_OF_BOUNDS.get(row[f"{name}_bound"], "")
    return "not known" if row[name] is None else f"{sign}{row[name]:,}"


def _expired(last: Row) -> Iterator[Line]:
    if last["expired_offsets"]:
        number = f"{SIGNS_OF_BOUNDS.get(last['expired_bound'], '')}{last['expired_offsets']:,}"
        noun = "offset" if last["expired_offsets"] == 1 else "offsets"
        yield Line(f"{number} committed {noun} expired since the run before", INFO)


def _full_disks(disks: Sequence[Row]) -> Iterator[Line]:
    full = [each for each in disks if each["full_at"] is not None]
    for each in sorted(full, key=lambda row: (row["full_at"], row["copy"]))[:MOST]:
        whose = f"the disk of {each['copy']} ({size_of(each['disk_bytes'])})"
        yield Line(f"{whose} {_filled(each)}", "warning")
    whys: dict[str, list[str]] = {}
    for each in disks:
        if each["full_bound"] == "unknown":
            whys.setdefault(each["reason"] or "not known", []).append(each["copy"])
    for why, copies in whys.items():
        yield Line(f"cannot tell when the disk of {', '.join(copies)} is full: {why}")


def _filled(disk: Row) -> str:
    size = size_of(disk["file_bytes"])
    if disk["file_bytes"] >= disk["disk_bytes"]:
        return f"is full, or larger than --disk-size: {size} of it are in the dump"
    rate = disk["bytes_per_day"]
    return (
        f"is full by {as_text(disk['full_at'])} at the latest: {size} of it are in the dump, "
        f"{size_of(rate)} more a day"
    )


def _reached(
    retention: Sequence[Row], before: Row | None, figures: Mapping[str, Any]
) -> Iterator[Line]:
    if due := figures.get("due"):
        yield Line(
            f"retention has reached {count(due, 'partition')}: the next record to read goes when "
            "brokers look next",
            "warning",
        )
    for each in retention[:MOST]:
        yield Line(
            f"retention reaches {each['group_id']} in {each['topic']}-{each['partition']} about "
            f"{as_text(each['lost_at'])}: {duration(each['loss_in_ms'])} are left, "
            f"{duration(each['earlier_loss_in_ms'])} before",
            "warning",
        )
    if before is not None and not retention:
        yield Line(_NO_OTHER_LIMIT if due else _NO_LIMIT)


def _open(
    last: Row, before: Row | None, rules: Sequence[Row], figures: Mapping[str, Any]
) -> Iterator[Line]:
    if before is None:
        yield Line("nothing shows what changed: there is one run of the cluster")
    if last["reason"]:
        yield Line(last["reason"])
    unknown = [each["rule"] for each in rules if each["change"] == _CANNOT_TELL]
    if unknown:
        names = ", ".join(unknown[:MOST]) + (" and others" if len(unknown) > MOST else "")
        yield Line(f"what became of the findings of {names}: the table of rules says why")
    groups = (figures.get("groups") or {}).get(_CANNOT_TELL, 0)
    if groups:
        yield Line(
            f"whether {count(groups, 'group')} came or went: the other run does not show all groups"
        )
    if bounded := figures.get("bounded"):
        yield Line(
            f"when retention reaches {count(bounded, 'partition')}: of these the time that is left "
            "is only a bound"
        )
    if changed := figures.get("other_retention"):
        yield Line(
            f"when retention reaches {count(changed, 'partition')}: their topics have another "
            "retention than in the run before, or nothing tells which"
        )


TABLES: Final = {
    "runs": "trend_runs",
    "rules": "trend_rules",
    "findings": "trend_findings",
    "changed_groups": "trend_changed_groups",
    "lag": "trend_lag",
    "retention": "trend_retention",
    "disks": "trend_disks",
    "bytes": "trend_bytes",
    "groups": "trend_groups",
}
"""What `--table` and JSON call them."""
MAIN: Final = "runs"
TITLES: Final = {
    "runs": "Runs",
    "rules": "Findings by rule",
    "findings": "Findings that are new or gone",
    "changed_groups": "Groups that came or went",
    "lag": "Groups that are furthest behind, or fell behind the most",
    "retention": "Retention reaches these, if it goes on so",
    "disks": "Disks",
    "bytes": "Internal topics",
    "groups": "Groups by type and state",
}
_LISTED: Final = ("runs", "findings", "changed_groups", "lag", "retention", "disks", "bytes")
"""What people are shown without asking for it."""
_KINDS: Final = {
    "new": "New",
    "worse": "Worse",
    "improved": "Gone or better",
    "limits": "Limits",
    "cannot_tell": "Cannot tell",
}
"""What is said of a cluster, by attribute of `ClusterLines`."""
_INDENT: Final = "  "


def trend_text(
    tables: Mapping[str, Rows],
    figures: Mapping[str, Mapping[str, Any]],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
) -> Text:
    """Return the answer as text.

    Args:
        tables: By the names of their contracts.
        figures: Of the answer, by cluster.
        output_format: The format.
        metadata: What JSON has beside the tables.
    """
    if output_format.is_for_programs:
        return rendered(sections_for_programs(tables), output_format, metadata)
    is_asked = output_format.table is not None or output_format.sort is not None
    sections = list(_for_people(tables, output_format.table))
    shown = rendered(sections, output_format, metadata)
    if is_asked or output_format.only_problems:
        return shown
    head = _head(lines_of(tables, figures), output_format)
    return "\n\n".join([head, *shown])


def sections_for_programs(tables: Mapping[str, Rows]) -> list[Section | LongSection]:
    """Return all tables with all their columns."""
    return [LongSection(tables[of], partial(_raw, name=name)) for name, of in TABLES.items()]


def _raw(rows: pa.Table, name: str) -> Section:
    section = raw_section(rows, name)
    return as_main(section) if name == MAIN else section


def _for_people(
    tables: Mapping[str, Rows], table_name: str | None
) -> Iterator[Section | LongSection]:
    for name, of in TABLES.items():
        rows = tables[of]
        if name == table_name:
            yield LongSection(rows, partial(_section, name=name))
        elif table_name is None and name in _LISTED and rows.num_rows:
            yield _first_of(rows, name, tables) if name in _MANY else _section(rows.whole(), name)


_MANY: Final = ("findings", "changed_groups", "lag")
"""Tables of which people are shown the first rows, of each cluster's last run."""
_MOST: Final = 20


def _first_of(rows: Rows, name: str, tables: Mapping[str, Rows]) -> Section:
    if name != "lag":
        return replace(_section(rows.first(_MOST), name), more=max(rows.num_rows - _MOST, 0))
    lags, runs = rows.whole(), tables[TABLES[MAIN]].whole()
    last = runs.group_by("cluster").aggregate([("as_of", "max")])
    is_last = pc.is_in(lags["as_of"], last["as_of_max"].combine_chunks())
    return _section(lags.filter(is_last), name)


def _section(rows: pa.Table, name: str) -> Section:
    of = TABLES[name]
    marked = rows
    problem = None
    if "change" in rows.column_names:
        is_wrong = pc.is_in(rows["change"], pa.array(["new", "worse", "cannot_tell"]))
        marked = marked.append_column("is_worse", is_wrong)
        problem = "is_worse"
        marked = with_values(marked, "change", pc.replace_substring(marked["change"], "_", " "))
    return table_section(
        with_times_as_text(with_signs(marked, of)),
        of,
        name,
        title=TITLES[name],
        problem=problem,
        also=(),
    )


def with_signs(rows: pa.Table, of: str) -> pa.Table:
    """Return rows in which values that are bounds have their signs; those columns are texts then.

    Args:
        rows: Of a table.
        of: The table, by the name of its contract.
    """
    bounds = {
        each.name: each.bound
        for each in table(of).columns
        if each.bound is not None and each.name in rows.column_names
    }
    return signed(rows, bounds)


def _head(clusters: Sequence[ClusterLines], output_format: OutputFormat) -> str:
    is_markup = output_format == "markdown"
    width = output_format.width
    return "\n\n".join("\n".join(_of_cluster(each, width, is_markup)) for each in clusters)


def _of_cluster(lines: ClusterLines, width: int, is_markup: bool) -> Iterator[str]:  # noqa: FBT001
    title = f"Cluster {lines.cluster}: {lines.instants}"
    if is_markup:
        yield f"## {printable(title)}\n"
    else:
        yield from wrapped(printable(title), width)
    for name, head in _KINDS.items():
        found: Sequence[Line] = getattr(lines, name)
        if not found and name in ("new", "worse"):
            found = [Line("nothing that is known")] if "one run" not in lines.instants else []
        if not found:
            continue
        yield f"**{head}**\n" if is_markup else f"{_INDENT}{head}"
        for each in found:
            word = f"{each.severity}: " if each.severity in ("critical", "warning") else ""
            text = printable(f"{word}{each.text}")
            if is_markup:
                yield f"- {_literal(text)}"
                continue
            first, *rest = wrapped(text, width - 2 * len(_INDENT) - 2) or [""]
            yield f"{_INDENT * 2}- {first}"
            yield from (f"{_INDENT * 2}  {line}" for line in rest)
        if is_markup:
            yield ""


def _literal(text: str) -> str:
    return "".join(f"\\{each}" if each in "\\`*_{}[]<>#|~!&@" else each for each in text)
