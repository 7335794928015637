"""What rules about groups read, laid out by group: the rows that they are about, and their records.

Rows pass through here some at a time. Which groups have a finding is only known about: what is held
does not grow with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.findings.advice import GROUPS, OF_GROUP
from analytics.questions.findings.configured_rules import configured_rules
from analytics.questions.findings.evidence import columns_of_records, tables_of_records
from analytics.questions.findings.finding_rows import mask_of
from analytics.replay.log.row_columns import polars_rows
from analytics.replayed.whole_groups import GroupPart, GroupRows, group_parts, parts_for
from analytics.tables.parted_table import PartedTable
from analytics.tables.record_keys import spread
from schemas import table, tables
from schemas.finding_rules import FindingRule

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.tables.stored_tables import StoredTables
    from schemas.manifest import Manifest

# The tables that rules read: those of a workspace, and what its manifest says.

_LOGS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copy", pa.string()),
        ("is_leading", pa.bool_()),
        ("lacks", pa.string()),
        ("deleted_below", pa.int64()),
        ("bytes_damaged", pa.int64()),
    ]
)
_ABSENT = pa.schema([("topic", pa.string()), ("partitions", pa.int64())])


@dataclass(frozen=True)
class StoredRows:
    """A table of a workspace, of any size: rules are about few of its rows.

    Attributes:
        tables: Where it is.
        name: Its name.
    """

    tables: StoredTables
    name: str

    @property
    def column_names(self) -> list[str]:
        """The columns of its contract."""
        return [each.name for each in table(self.name).columns]

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield its rows, file after file, some at a time; at least once.

        Raises:
            WorkspaceError: The table cannot be read.
        """
        return self.tables.pieces(self.name, columns)


JudgedTables = Mapping[str, pa.Table | PartedTable | StoredRows]
"""Tables that rules are applied to, by name."""


def scan_for(
    rules: Sequence[FindingRule], table: pa.Table | PartedTable | StoredRows
) -> Iterator[pa.Table]:
    """Yield what rules read of a table, some rows at a time; at least once.

    Rows of a group are in one part: their order is that of the table.
    """
    columns = set(OF_GROUP).union(*(rule.columns() for rule in rules))
    wanted = [name for name in table.column_names if name in columns]
    return iter([table.select(wanted)]) if isinstance(table, pa.Table) else table.scan(wanted)


def judged_tables(state: ReplayedWorkspace) -> dict[str, pa.Table | StoredRows]:
    """Return the tables that rules read, those of a workspace and what its manifest says.

    Args:
        state: A workspace in which all questions were answered.
    """
    rules = configured_rules(state.settings.from_file.findings)
    wanted = {rule.table for rule in rules if rule.is_on}
    stored = state.tables
    found = {
        name: StoredRows(stored, name)
        for name in sorted(wanted & tables().keys())
        if stored.has(name)
    }
    return {
        **found,
        "log_partitions": pa.Table.from_pylist(list(_logs(state.manifest)), schema=_LOGS),
        "absent_partitions": pa.Table.from_pylist(list(_absent(state.manifest)), schema=_ABSENT),
    }


def _logs(manifest: Manifest) -> Iterator[dict[str, Any]]:
    for each in manifest["partitions"]:
        yield {
            "topic": each["topic"],
            "partition": each["partition"],
            "copy": each.get("copy"),
            "lacks": each.get("lacks"),
            "is_leading": each.get("is_leading", True),
            "deleted_below": each.get("deleted_below"),
            "bytes_damaged": each.get("bytes_damaged"),
        }


def _absent(manifest: Manifest) -> Iterator[dict[str, Any]]:
    for topic, numbers in manifest.get("absent_partitions", {}).items():
        if numbers:
            yield {"topic": topic, "partitions": len(numbers)}


AT_ONCE: Final = 1_000_000
"""So many rows of whole groups are looked at together, about."""

_GROUP: Final = OF_GROUP[0]
_NUMBERS: Final = 1 << 22
_RECORDS: Final = "records of "


class RowsForRules(NamedTuple):
    """Rows by group, in parts of whole groups.

    Attributes:
        judged: Give by name of a table the rows that a rule is about.
        with_records: Give these, and what tells where records are (`records_in`).
        chosen: How many rows each rule is about.
    """

    judged: Sequence[GroupPart]
    with_records: Sequence[GroupPart]
    chosen: Mapping[str, int]


def records_in(part: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return by name of a table what tells where records are."""
    return {
        name.removeprefix(_RECORDS): rows
        for name, rows in part.items()
        if name.startswith(_RECORDS)
    }


@contextmanager
def rows_for_rules(
    rules: Sequence[FindingRule],
    tables: JudgedTables,
    stored: StoredTables,
    as_of: datetime,
    beside: str | None,
) -> Iterator[RowsForRules]:
    """Lay out what rules read, as long as the parts are needed.

    Args:
        rules: Their findings are of one group each.
        tables: Those that they are applied to, by name.
        stored: Know where records are.
        as_of: The instant asked about.
        beside: The folder of `group_parts`.
    """
    by_table: dict[str, list[FindingRule]] = {}
    for rule in rules:
        by_table.setdefault(rule.table, []).append(rule)
    records = _tables_there(rules, stored)
    chosen = _Chosen(as_of, {name: _Groups() for name in records})
    parts = parts_for(sum(_rows_in(tables[name]) for name in by_table), AT_ONCE)
    judged = {
        name: GroupRows(chosen.rows(its, tables[name]), pl.col(_GROUP))
        for name, its in by_table.items()
    }
    with group_parts(judged, parts, beside) as chosen_parts:
        known = {
            _RECORDS + name: GroupRows(
                _of_groups(stored, name, columns, chosen.groups[name]), pl.col(_GROUP)
            )
            for name, columns in records.items()
        }
        with group_parts(known, parts, beside) as record_parts:
            both = [
                partial(_both, one, other)
                for one, other in zip(chosen_parts, record_parts, strict=True)
            ]
            yield RowsForRules(chosen_parts, both, chosen.counts)


def _both(one: GroupPart, other: GroupPart) -> dict[str, pl.DataFrame]:
    # In this order: whose records are looked for is known when rows were chosen.
    return {**one(), **other()}


def _tables_there(rules: Sequence[FindingRule], stored: StoredTables) -> dict[str, list[str]]:
    """Return by table that is there the columns that are read where records are looked for."""
    columns = columns_of_records()
    columns[GROUPS] = list(dict.fromkeys([*columns.get(GROUPS, ()), *OF_GROUP]))
    used = set().union(*map(_tables_beside, rules))
    return {name: columns[name] for name in sorted(used) if stored.has(name)}


def _tables_beside(rule: FindingRule) -> set[str]:
    return tables_of_records(rule) | ({GROUPS} if rule.names_tool_of_group() else set())


def _rows_in(table: pa.Table | StoredRows) -> int:
    return int(table.tables.count(table.name) if isinstance(table, StoredRows) else table.num_rows)


class _Groups:
    """Groups that were seen; of others some may seem to be."""

    def __init__(self) -> None:
        self._seen: npt.NDArray[np.bool_] = np.zeros(_NUMBERS, np.bool_)

    def add(self, groups: pl.Series) -> None:
        self._seen[_numbers(groups)] = True

    def among(self, groups: pl.Series) -> pl.Series:
        """Return which of these are."""
        return pl.Series(self._seen[_numbers(groups)], dtype=pl.Boolean)

    def __bool__(self) -> bool:
        return bool(self._seen.any())


def _numbers(groups: pl.Series) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = pl.select(spread(pl.lit(groups))).to_series().to_numpy()
    return found % _NUMBERS


@dataclass
class _Chosen:
    """Picks the rows that rules are about.

    Attributes:
        as_of: The instant asked about.
        groups: By table that tells where records are, whose are looked for there.
        counts: By rule, how many rows it is about.
    """

    as_of: datetime
    groups: Mapping[str, _Groups]
    counts: dict[str, int] = field(default_factory=dict)

    def rows(
        self, rules: Sequence[FindingRule], table: pa.Table | StoredRows
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows of a table that any of the rules is about, some at a time; at least once.

        Args:
            rules: All are about this table.
            table: The table.
        """
        for piece in scan_for(rules, table):
            if not piece.num_rows:
                yield polars_rows(piece)
                continue
            masks = [self._mask(rule, piece) for rule in rules]
            yield polars_rows(piece.filter(reduce(pc.or_, masks)))

    def _mask(self, rule: FindingRule, piece: pa.Table) -> pa.ChunkedArray | pa.Array:
        mask = mask_of(rule, piece, self.as_of)
        groups = piece[_GROUP].filter(mask)
        if len(groups):
            self.counts[rule.name] = self.counts.get(rule.name, 0) + len(groups)
            distinct = pl.Series(pc.unique(groups), dtype=pl.String)
            for name in _tables_beside(rule) & self.groups.keys():
                self.groups[name].add(distinct)
        return mask


def _of_groups(
    stored: StoredTables, name: str, columns: Sequence[str], groups: _Groups
) -> Iterator[pl.DataFrame]:
    """Yield rows of a table that are of some groups; none of others where few are looked for."""
    for piece in stored.pieces(name, columns):
        rows = polars_rows(piece)
        yield rows.filter(groups.among(rows[_GROUP]))
        if not groups:
            return
