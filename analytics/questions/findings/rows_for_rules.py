"""What rules about groups read: the rows that they are about, and where their records are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.findings.advice import GROUPS, OF_GROUP
from analytics.questions.findings.configured_rules import configured_rules
from analytics.questions.findings.evidence import columns_of_records, tables_of_records
from analytics.questions.findings.finding_rows import mask_of
from analytics.replayed.group_rows import PartedGroups, RowCondition, StoredGroups
from analytics.replayed.whole_groups import whole_group_parts
from analytics.tables.parted_table import PartedTable
from schemas import table, tables
from schemas.finding_rules import FindingRule

if TYPE_CHECKING:
    from analytics.engine.part_runs import GroupPart
    from analytics.replayed.group_rows import GroupFiles
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
    wanted = _columns_for(rules, table)
    return iter([table.select(wanted)]) if isinstance(table, pa.Table) else table.scan(wanted)


def _columns_for(
    rules: Sequence[FindingRule], table: pa.Table | PartedTable | StoredRows
) -> list[str]:
    columns = set(OF_GROUP).union(*(rule.columns() for rule in rules))
    return [name for name in table.column_names if name in columns]


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


AT_ONCE: Final = 3_000_000
"""So many rows of whole groups are read for a part, about; rules are about few of them."""

_GROUP: Final = OF_GROUP[0]
_RECORDS: Final = "records of "


@contextmanager
def rows_for_rules(
    rules: Sequence[FindingRule],
    tables: JudgedTables,
    stored: StoredTables,
    as_of: datetime,
    beside: str | None,
) -> Iterator[Sequence[GroupPart]]:
    """Give what rules read, in parts of whole groups, as long as the parts are needed.

    A part gives by name of a table the rows that a rule is about, and what tells where records are
    (`records_in`).

    Args:
        rules: Their findings are of one group each.
        tables: Those that they are applied to, by name.
        stored: Know where records are.
        as_of: The instant asked about.
        beside: As `whole_group_parts` takes it.
    """
    by_table = _by_table(rules)
    judged: dict[str, GroupFiles] = {
        name: _groups_of(tables[name], its, as_of, _columns_for(its, tables[name]))
        for name, its in by_table.items()
    }
    records = {
        _RECORDS + name: StoredGroups(stored, name, columns)
        for name, columns in _tables_there(rules, stored).items()
    }
    with whole_group_parts({**judged, **records}, AT_ONCE, beside) as parts:
        yield parts


@contextmanager
def rows_to_give_back(
    rules: Sequence[FindingRule], tables: JudgedTables, as_of: datetime, beside: str | None
) -> Iterator[Sequence[GroupPart]]:
    """Give what `lost_spans` takes, in parts of whole groups, as long as the parts are needed.

    Args:
        rules: Those whose suggestions give offsets back.
        tables: Those that they are applied to, by name.
        as_of: The instant asked about.
        beside: As `whole_group_parts` takes it.
    """
    sources: dict[str, GroupFiles] = {}
    for name, its in _by_table(rules).items():
        read = set().union(
            *(rule.columns_of_conditions() for rule in its),
            *(rule.restore.columns() for rule in its if rule.restore is not None),
        )
        columns = [each for each in tables[name].column_names if each in read]
        sources[name] = _groups_of(tables[name], its, as_of, columns)
    with whole_group_parts(sources, AT_ONCE, beside) as parts:
        yield parts


def _by_table(rules: Sequence[FindingRule]) -> dict[str, list[FindingRule]]:
    found: dict[str, list[FindingRule]] = {}
    for rule in rules:
        found.setdefault(rule.table, []).append(rule)
    return found


def records_in(
    rules: Sequence[FindingRule], part: Mapping[str, pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """Return by name of a table what tells where the records of groups with findings are.

    Args:
        rules: Those that are applied to the part.
        part: Of `rows_for_rules`.
    """
    groups: dict[str, list[pl.Series]] = {}
    for rule in rules:
        for name in _tables_beside(rule):
            groups.setdefault(name, []).append(part[rule.table][_GROUP])
    found = {}
    for name in part:
        if name.startswith(_RECORDS):
            table = name.removeprefix(_RECORDS)
            theirs = pl.concat(groups[table]).unique()
            if theirs.is_empty():
                # No rule looks for a record in it: it is not even read.
                continue
            found[table] = part[name].filter(pl.col(_GROUP).is_in(theirs.implode()))
    return found


def _groups_of(
    table: pa.Table | PartedTable | StoredRows,
    rules: Sequence[FindingRule],
    as_of: datetime,
    columns: Sequence[str],
) -> GroupFiles:
    """Return what reads columns of the rows of a table that one of the rules is about."""
    looked_at = set().union(*(rule.columns_of_conditions() for rule in rules))
    condition = RowCondition(
        [each for each in columns if each in looked_at], partial(_are_chosen, rules, as_of)
    )
    if isinstance(table, StoredRows):
        return StoredGroups(table.tables, table.name, columns, condition=condition)
    parted = PartedTable.held(table) if isinstance(table, pa.Table) else table
    return PartedGroups(parted, columns, condition)


def _are_chosen(rules: Sequence[FindingRule], as_of: datetime, rows: pa.Table) -> pa.ChunkedArray:
    """Return of each row whether one of the rules is about it."""
    masks = [mask_of(each, rows, as_of) for each in rules]
    return reduce(pc.or_, masks)


def _tables_there(rules: Sequence[FindingRule], stored: StoredTables) -> dict[str, list[str]]:
    """Return by table that is there the columns that are read where records are looked for."""
    columns = columns_of_records()
    columns[GROUPS] = list(dict.fromkeys([*columns.get(GROUPS, ()), *OF_GROUP]))
    used = set().union(*map(_tables_beside, rules))
    return {name: columns[name] for name in sorted(used) if stored.has(name)}


def _tables_beside(rule: FindingRule) -> set[str]:
    return tables_of_records(rule) | ({GROUPS} if rule.names_tool_of_group() else set())
