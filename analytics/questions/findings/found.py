"""Findings of rules: one for each group of rows that a rule is about, with its records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.findings.advised_tools import OF_GROUP, group_types, with_tool
from analytics.questions.findings.conditions import rows_of
from analytics.questions.findings.evidence import KnownRecords, record_of, with_records
from analytics.questions.findings.judged_tables import JudgedTables, StoredRows
from analytics.questions.findings.restore_commands import RestoreCommand, restore_commands
from analytics.questions.findings.wording import Phrasing, WordedValue, worded, worded_command
from schemas.finding_rules import SEVERITIES, FindingRule

_MOST_RECORDS: Final = 3
_MOST_NAMES: Final = 3
_TAKE: Final[Mapping[str, Callable[[list[Any]], Any]]] = {"sum": sum, "min": min, "max": max}
_KEY: Final = ("group_id", "topic", "partition")

FINDINGS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("finding_id", "rule", "severity", "object_type")),
        *((name, pa.string()) for name in ("group_id", "topic")),
        ("partition", pa.int32()),
        ("since", pa.timestamp("us", "UTC")),
        *((name, pa.string()) for name in ("message", "suggestion")),
        (
            "evidence",
            pa.list_(
                pa.struct(
                    [
                        *((name, pa.string()) for name in ("copy", "topic")),
                        ("partition", pa.int32()),
                        ("offset", pa.int64()),
                        ("segment", pa.string()),
                        ("batch_position", pa.int64()),
                    ]
                )
            ),
        ),
    ]
)

Row = Mapping[str, Any]


def findings(
    rules: Iterable[FindingRule],
    tables: JudgedTables,
    as_of: datetime,
    phrasing: Phrasing,
    asked_of: Mapping[str, str],
    known_records: KnownRecords | None = None,
) -> pa.Table:
    """Apply rules to tables.

    Args:
        rules: Those that are looked for.
        tables: By name; a rule whose table is not there is not applied.
        as_of: The instant asked about.
        phrasing: How bytes and durations are said.
        asked_of: `input` and `dump` of suggestions, as a shell takes them: INPUT with the options
            without which it is not the same, and with what was assumed of it besides.
        known_records: Where the records are found that the tables of rules do not have; None where
            only the messages count.

    Returns:
        `FINDINGS`, the most severe first.
    """
    by_table: dict[str, list[FindingRule]] = {}
    for rule in rules:
        if rule.is_on and rule.table in tables:
            by_table.setdefault(rule.table, []).append(rule)
    found = [
        row
        for name, its in by_table.items()
        for rule, chosen in zip(its, _chosen(its, tables[name], as_of), strict=True)
        for row in _of_rule(rule, chosen, phrasing, asked_of, known_records)
    ]
    return in_order(pa.Table.from_pylist(found, schema=FINDINGS))


def in_order(findings: pa.Table) -> pa.Table:
    """Return findings, the most severe first."""
    rank = pc.index_in(findings["severity"], value_set=pa.array(SEVERITIES))
    keys = ["rank", "rule", "group_id", "topic", "partition", "finding_id"]
    order = [(each, "ascending") for each in keys]
    return findings.append_column("rank", rank).sort_by(order).drop_columns(["rank"])


def _chosen(
    rules: Sequence[FindingRule], table: pa.Table | StoredRows, as_of: datetime
) -> list[pa.Table]:
    """Return for each of the rules about a table the rows that it is about: few of a great many."""
    there = table.column_names
    columns = set(OF_GROUP).union(*(rule.columns() for rule in rules))
    wanted = [name for name in there if name in columns]
    pieces = iter([table.select(wanted)]) if isinstance(table, pa.Table) else table.pieces(wanted)
    chosen: list[list[pa.Table]] = [[] for _ in rules]
    for piece in pieces:
        for rule, rows in zip(rules, chosen, strict=True):
            found = rows_of(rule, piece, as_of)
            if found.num_rows or not rows:
                rows.append(found)
    return [pa.concat_tables(rows) for rows in chosen]


def _of_rule(
    rule: FindingRule,
    chosen: pa.Table,
    phrasing: Phrasing,
    asked_of: Mapping[str, str],
    known_records: KnownRecords | None,
) -> Iterator[dict[str, Any]]:
    types = group_types(rule, chosen, known_records)
    rows = with_records(rule, chosen.select(sorted(rule.columns())), known_records).to_pylist()
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
                worded_command(rule.suggestion, values, {**self.asked_of, **each.values()})
                for each in self.restoring
            )
        command = rule.suggestion if rule.restore is None else rule.restore.otherwise
        command, of_tool = with_tool(command, self.group_type)
        return worded_command(command, values, {**self.asked_of, **of_tool})


def _finding(
    rule: FindingRule, key: Row, rows: list[Row], phrasing: Phrasing, advice: _Advice
) -> dict[str, Any]:
    said = {
        # The number of a partition is a name.
        **{name: WordedValue(str(value)) for name, value in key.items()},
        **{
            name: WordedValue(aggregated(each["take"], rows, each.get("column")), each.get("as"))
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
        "finding_id": finding_id(rule.name, key),
        "rule": rule.name,
        "severity": rule.severity,
        "object_type": rule.object_type,
        **{name: key.get(name) for name in _KEY},
        "since": None if since is None else aggregated(since["take"], rows, since["column"]),
        "message": worded(rule.message, said, phrasing),
        "suggestion": advice.worded(rule, said),
        "evidence": _evidence(rows),
    }


def finding_id(rule: str, key: Row) -> str:
    """Return an id that is the same whenever a rule finds the same object."""
    text = json.dumps([rule, *map(str, key.values())], ensure_ascii=False)
    return f"{rule}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def aggregated(take: str, rows: list[Row], column: str | None) -> Any:  # noqa: ANN401 - a cell
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
    for each in map(record_of, rows):
        if each["partition"] is not None and each not in found:
            found.append(each)
        if len(found) == _MOST_RECORDS:
            break
    return found
