"""Findings of rules, one a group of rows, and which are new, still there or gone since an audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from types import MappingProxyType
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_rows, arrow_schema, polars_rows
from analytics.engine.part_runs import PartAnswer, PartRunner
from analytics.questions.findings.advice import (
    OF_GROUP,
    Advice,
    Phrasing,
    RestoreCommands,
    WordedValue,
    as_names,
    group_types,
    lost_spans,
    shared_commands,
    worded,
)
from analytics.questions.findings.evidence import Records, with_records
from analytics.questions.findings.finding_rows import (
    RECORDS,
    SINCE,
    finding_rows,
    key,
    pieces,
    rows_of,
    value,
)
from analytics.questions.findings.rows_for_rules import JudgedTables, StoredRows, scan_for
from analytics.replayed.group_rows import GroupRows
from analytics.replayed.whole_groups import group_parts, parts_for
from analytics.tables.parted_table import Order, PartedTable
from schemas.finding_rules import SEVERITIES, FindingRule

# Findings of rules: one for each group of rows that a rule is about, with its records.

_AT_ONCE: Final = 20_000
"""So many findings are made at a time: their words take several times what they rest on."""
_KEY: Final = ("group_id", "topic", "partition")
_OF_RULE: Final = {"rule": "name", "severity": "severity", "object_type": "object_type"}

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


def findings(
    rules: Iterable[FindingRule],
    tables: JudgedTables,
    as_of: datetime,
    phrasing: Phrasing,
    asked_of: Mapping[str, str],
    known_records: Records | None = None,
    given_back: Mapping[str, RestoreCommands] = MappingProxyType({}),
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
        given_back: By rule the commands that give back what was lost, where the tables have only
            some of the groups that one command serves.

    Returns:
        `FINDINGS`, the most severe first.
    """
    by_table: dict[str, list[FindingRule]] = {}
    for rule in rules:
        if rule.is_on and rule.table in tables:
            by_table.setdefault(rule.table, []).append(rule)
    parts = [FINDINGS.empty_table()]
    words = _Words(phrasing, asked_of, given_back)
    for name, its in by_table.items():
        for rule, chosen in zip(its, _chosen(its, tables[name], as_of), strict=True):
            parts += _of_rule(rule, chosen, words, known_records)
    return in_order(pa.concat_tables(parts))


def _worst_first(rows: pl.DataFrame) -> pl.DataFrame:
    rank = pl.col(_ORDER[0]).cast(pl.Enum(SEVERITIES))
    return rows.sort(rank, *_ORDER[1:], nulls_last=True, maintain_order=True)


_ORDER: Final = ("severity", "rule", *_KEY, "finding_id")
WORST_FIRST: Final = Order(_ORDER, _worst_first)
"""The order of findings: the most severe first, then by rule and by what they are about."""


def in_order(findings: pa.Table) -> pa.Table:
    """Return findings, the most severe first."""
    return WORST_FIRST.sorted(findings)


def _chosen(
    rules: Sequence[FindingRule], table: pa.Table | StoredRows, as_of: datetime
) -> list[pa.Table]:
    """Return for each of the rules about a table the rows that it is about: few of a great many."""
    chosen: list[list[pa.Table]] = [[] for _ in rules]
    for piece in scan_for(rules, table):
        for rule, rows in zip(rules, chosen, strict=True):
            mine = rows_of(rule, piece, as_of)
            if mine.num_rows or not rows:
                read = rule.columns().union(OF_GROUP)
                rows.append(mine.select([each for each in piece.column_names if each in read]))
    return [pa.concat_tables(rows) for rows in chosen]


@dataclass(frozen=True)
class _Words:
    """How findings are said.

    Attributes:
        phrasing: How bytes and durations are said.
        asked_of: `input` and `dump` of suggestions.
        given_back: Commands that are known, by rule.
    """

    phrasing: Phrasing
    asked_of: Mapping[str, str]
    given_back: Mapping[str, RestoreCommands]


def _of_rule(
    rule: FindingRule, chosen: pa.Table, words: _Words, known_records: Records | None
) -> Iterator[pa.Table]:
    """Yield the findings of a rule, some at a time."""
    if not chosen.num_rows:
        return
    types = group_types(rule, chosen, known_records)
    rows = with_records(rule, chosen.select(sorted(rule.columns())), known_records)
    commands = None
    if rule.restore is not None:
        known = words.given_back.get(rule.name) or shared_commands([lost_spans(rule.restore, rows)])
        commands = known.of_groups(rows["group_id"])
    advice = Advice(rule, words.asked_of, types, commands)
    for piece in pieces(rows, rule.per, _AT_ONCE):
        yield _findings(rule, finding_rows(rule, piece), words.phrasing, advice)


def _findings(
    rule: FindingRule, rows: pl.DataFrame, phrasing: Phrasing, advice: Advice
) -> pa.Table:
    """Return findings, one of each row that `finding_rows` has made."""
    # The number of a partition is a name.
    names = {name: as_names(rows[key(name)]) for name in rule.per}
    values = {
        **{name: WordedValue(each) for name, each in names.items()},
        **{
            name: WordedValue(rows[value(name)], each.get("as"))
            for name, each in rule.values.items()
        },
        **{name: WordedValue(_shortest(each.value)) for name, each in rule.thresholds.items()},
    }
    count = len(rows)
    columns = {
        "finding_id": _finding_ids(rule.name, names),
        **{name: pl.repeat(getattr(rule, of), count, eager=True) for name, of in _OF_RULE.items()},
        **{name: rows[key(name)] if name in rule.per else _nothing(count) for name in _KEY},
        "since": rows[SINCE],
        "message": worded(rule.message, values, phrasing, count),
        "suggestion": advice.suggestions(rows, values),
        "evidence": rows[RECORDS],
    }
    return arrow_rows(pl.DataFrame(columns)).cast(FINDINGS)


def _nothing(count: int) -> pl.Series:
    return pl.repeat(None, count, dtype=pl.Null, eager=True)


def _shortest(threshold: float) -> float:
    return int(threshold) if threshold == int(threshold) else threshold


_ID_BYTES: Final = 8
"""So much of a digest tells findings apart."""
_NOT_PLAIN: Final = r'["\\\x00-\x1f]'
"""What JSON cannot have within a text as it is."""


def _finding_ids(rule: str, names: Mapping[str, pl.Series]) -> pl.Series:
    """Return ids that are the same whenever a rule finds the same object.

    Args:
        rule: Its name.
        names: What it is about, by column: texts, one a finding.
    """
    texts = pl.DataFrame({name: _as_json(each) for name, each in names.items()})
    begin = f"[{json.dumps(rule, ensure_ascii=False)}, "
    objects = pl.concat_str(pl.lit(begin), pl.concat_str(pl.all(), separator=", "), pl.lit("]"))
    of_objects = texts.select(objects.cast(pl.Binary)).to_series()
    digests = [sha256(each).digest()[:_ID_BYTES] for each in of_objects.to_list()]
    return rule + "-" + pl.Series(digests, dtype=pl.Binary).bin.encode("hex")


def _as_json(texts: pl.Series) -> pl.Series:
    """Return texts as `json.dumps` writes them; few have anything that is written otherwise."""
    plain = '"' + texts + '"'
    is_other = texts.str.contains(_NOT_PLAIN)
    if not is_other.any():
        return plain
    others = [json.dumps(each, ensure_ascii=False) for each in texts.filter(is_other).to_list()]
    return plain.scatter(is_other.arg_true(), others)


# Findings of two audits: which are new, still there, or gone.

NEW: Final = "new"
STILL: Final = "still_there"
NOT_THERE_NOW: Final = "gone"
AT_ONCE: Final = 200_000
"""So many findings of both audits are looked at together, about: they have long texts."""

_ID: Final = "finding_id"
_NOW, _BEFORE, _CHANGED = "now", "before", "changed"


def with_changes(findings: pa.Table, before: pa.Table) -> pa.Table:
    """Return findings with `change`: `new` or `still_there`; those that are `gone` come last.

    Args:
        findings: Rows of `findings`.
        before: Those of the earlier audit.
    """
    was_there = pc.is_in(findings["finding_id"], value_set=_ids(before))
    gone = before.filter(pc.invert(pc.is_in(before["finding_id"], value_set=_ids(findings))))
    now = findings.append_column("change", pc.if_else(was_there, STILL, NEW))
    then = gone.append_column("change", pa.repeat(NOT_THERE_NOW, gone.num_rows))
    return pa.concat_tables([now, then.select(now.column_names)], promote_options="permissive")


def changes_in_parts(findings: PartedTable, before: PartedTable, runner: PartRunner) -> PartedTable:
    """Return `with_changes` of tables of any size: some findings are looked for at a time.

    Args:
        findings: Rows of `findings`.
        before: Those of the earlier audit.
        runner: Makes parts.
    """
    rows = {
        name: GroupRows(map(polars_rows, each.pieces()), pl.col(_ID))
        for name, each in ((_NOW, findings), (_BEFORE, before))
    }
    parts = parts_for(findings.num_rows + before.num_rows, AT_ONCE)
    with group_parts(rows, parts, runner.folder) as reads:
        return runner.run(_changes_of_part, reads, {_CHANGED: NOW_FIRST}).tables[_CHANGED]


def _changes_of_part(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    now, before = (arrow_rows(rows[each]) for each in (_NOW, _BEFORE))
    return PartAnswer({_CHANGED: polars_rows(with_changes(now, before))})


def kept_changes(changes: PartedTable) -> PartedTable:
    """Return the table `finding_changes`.

    Args:
        changes: As `changes_in_parts` returns them.
    """
    schema = arrow_schema("finding_changes")
    if len(changes.parts) == 1 and isinstance(changes.parts[0], pa.Table):
        return PartedTable.held(changes.whole().select(schema.names).cast(schema))
    # Its columns do not tell its order: what has a condition is written into one file, in order.
    return replace(changes, schema=schema, condition=pl.col("change").is_not_null())


def _now_first(rows: pl.DataFrame) -> pl.DataFrame:
    is_gone = pl.col("change") == NOT_THERE_NOW
    return WORST_FIRST.sort(rows).sort(is_gone, maintain_order=True)


NOW_FIRST: Final = Order(("change", *WORST_FIRST.columns), _now_first)
"""The order of changes: that of findings; those that are gone come last."""


def _ids(findings: pa.Table) -> pa.Array:
    return findings["finding_id"].combine_chunks()
