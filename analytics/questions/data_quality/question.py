"""Whether the tables of a workspace hold what is expected: contracts, our suites, a team's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.contracts import arrow_rows, polars_rows, table_of
from analytics.engine.part_runs import GroupPart, PartAnswer, PartRunner, release_freed_memory
from analytics.errors import InputNotRecognizedError
from analytics.questions.data_quality.great_expectations_engine import Engine, Judged
from analytics.questions.data_quality.judged_table import (
    BROKEN,
    MOST_ROWS,
    ROW_BY_ROW,
    Counted,
    StoredTable,
    checked,
    is_checked_here,
    judged_tables,
    together,
)
from analytics.questions.question import Answer, Question
from analytics.replayed.group_rows import GroupRows
from analytics.replayed.whole_groups import RowsByTable, group_parts, parts_for, stored_parts
from analytics.tables.buckets import packed
from analytics.tables.stored_tables import KINDS, StoredTables, batches_by_file, count_by_file
from analytics.workspace import DATA_LOGS, DECODED, EVALUATIONS, HISTORY, STATE, reading
from schemas import SchemaError, tables
from schemas.expectation_suites import (
    Expectation,
    expected_by_contract,
    suite_of,
    written_suites,
)

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.workspace import Workspace

    Suites = Mapping[str, Sequence[Expectation]]

NAME: Final = "data_quality"
FOLDERS: Final = (DECODED, DATA_LOGS, STATE, HISTORY, EVALUATIONS)
AT_ONCE: Final = 500_000
"""So many rows of a table are looked at together, about."""
GROUPS_AT_ONCE: Final = 2_000_000
"""So many rows of whole groups in all tables are looked at one after the other, about."""
_GROUP: Final = "group_id"
_ACROSS_ROWS: Final = ("per", "columns", "other_columns")
"""Arguments of checks that look at several rows: those that are alike in these columns."""
_ORDER: Final = {BROKEN: 0, "failed": 1, "passed": 2}


def team_suites(folder: str | None) -> dict[str, list[Expectation]]:
    """Return the suites of a folder, by table.

    Raises:
        InputNotRecognizedError: It is no folder, or a file in it is no suite of a table there is.
    """
    found: dict[str, list[Expectation]] = {}
    if folder is None:
        return found
    if not Path(folder).is_dir():
        raise InputNotRecognizedError(f"--expectations {folder} is no folder")
    for path in sorted(Path(folder).glob("*.json")):
        try:
            suite = suite_of(json.loads(path.read_text(encoding="utf-8")), path.stem, path.name)
        except (SchemaError, ValueError) as error:
            raise InputNotRecognizedError(f"{path} is no suite: {error}") from error
        for each in suite:
            if each.table not in tables():
                raise InputNotRecognizedError(
                    f"{path} is about the table {each.table}, which there is not; "
                    "a file has the name of its table, or `meta` of the suite says `table`"
                )
            found.setdefault(each.table, []).append(each)
    return found


def expectations_of(name: str, suites: Suites) -> list[Expectation]:
    """Return all that is expected of a table: by its contract, by us, by a team.

    Args:
        name: The table.
        suites: A team's own expectations, by table.

    Raises:
        KeyError: There is no such table.
    """
    return [
        *expected_by_contract(tables()[name]),
        *written_suites().get(name, ()),
        *suites.get(name, ()),
    ]


@dataclass(frozen=True)
class QualitySettings:
    """What of data quality is asked.

    Attributes:
        expectations: A folder with suites of a team's own.
        with_examples: Show a row that is not as expected, with the names in it.
        for_data_docs: Let great-expectations judge also what its pages show as passed.
    """

    expectations: str | None = None
    with_examples: bool = True
    for_data_docs: bool = False


def data_quality(state: ReplayedWorkspace, settings: QualitySettings) -> Answer:
    """Return whether the tables of the workspace hold what is expected of them.

    Raises:
        InputNotRecognizedError: A file in the folder is no suite of a table there is.
        WorkspaceError: A table cannot be read.
    """
    suites = team_suites(settings.expectations)
    space = state.tables.workspace
    rows = data_quality_of(
        space,
        suites,
        state.runner,
        has_examples=settings.with_examples,
        engine=Engine(of_zeros=bool(suites) or settings.for_data_docs),
    )
    return Answer({NAME: rows})


def data_quality_of(
    space: Workspace,
    suites: Suites,
    runner: PartRunner | None = None,
    *,
    has_examples: bool = True,
    engine: Engine | None = None,
) -> pa.Table:
    """Return the table `data_quality`: what is broken first, then what failed.

    Args:
        space: The workspace whose tables are judged.
        suites: A team's own expectations, by table.
        runner: Looks at large tables part by part; None does it here.
        has_examples: Show a row that is not as expected, with the names in it.
        engine: Judges; None is one that is not loaded where nothing is counted.
    """
    stored = _Stored(space)
    expected = _with_expectations(stored, suites, runner or PartRunner())
    rows = judged_tables(expected, stored.pieces, engine or Engine())
    order = {name: place for place, name in enumerate(stored.names)}
    rows.sort(key=lambda each: (_ORDER[each["outcome"]], order[each["table"]]))
    if not has_examples:
        rows = [{**each, "example": None} for each in rows]
    return table_of(NAME, rows)


def _with_expectations(
    stored: _Stored, suites: Suites, runner: PartRunner
) -> Iterator[tuple[StoredTable, Sequence[Expectation]]]:
    large = {name: table for name in stored.names if (table := stored.table(name)).count > AT_ONCE}
    of_groups = _in_groups(stored, large, suites, runner)
    for name in stored.names:
        contract, expected = tables()[name], expectations_of(name, suites)
        table = large.get(name) or stored.table(name)
        schema, count = table.schema, table.count
        if name in large:
            checks = of_groups.get(name, {}) | _in_parts(stored, table, expected, runner)
            table = replace(table, checked=checks)
        left = [each for place, each in enumerate(expected) if place not in table.checked]
        there = _columns(contract.key, left, schema)
        is_held = count <= MOST_ROWS and any(each.columns for each in left)
        rows = stored.read(name, there) if is_held else schema.empty_table().select(there)
        yield replace(table, rows=rows), expected


# A large table is looked at in parts. Which rows have to be in the same one is a matter of what is
# expected of them.


class _Together(NamedTuple):
    """Which rows are looked at together.

    Attributes:
        columns: Those in which they are alike; none where each row is looked at by itself.
        other: Another table whose rows are looked at, too.
        other_columns: Its columns in place of `columns`.
    """

    columns: tuple[str, ...] = ()
    other: str | None = None
    other_columns: tuple[str, ...] = ()


_EACH_ROW: Final = _Together()
_WHOLE_GROUPS: Final = _Together((_GROUP,))


def _in_parts(
    stored: _Stored, table: StoredTable, expected: Sequence[Expectation], runner: PartRunner
) -> dict[int, Judged | Counted]:
    """Return by place what comes of all that can be looked at in parts, but those of groups."""
    wanted = _by_rows(stored, table, expected)
    wanted.pop(_WHOLE_GROUPS, None)
    checks: dict[int, Judged | Counted] = {}
    for rows, these in wanted.items():
        with _parts(stored, table, rows, these, runner) as parts:
            checks |= together(runner.run(partial(_checked_part, table, these), parts).sums)
        release_freed_memory()
    return checks


def _by_rows(
    stored: _Stored, table: StoredTable, expected: Sequence[Expectation]
) -> dict[_Together, dict[int, Expectation]]:
    wanted: dict[_Together, dict[int, Expectation]] = {}
    for place, each in enumerate(expected):
        if (rows := _rows_together(stored, table, each)) is not None:
            wanted.setdefault(rows, {})[place] = each
    return wanted


_OfTable = tuple[StoredTable, Mapping[int, "Expectation"]]


def _in_groups(
    stored: _Stored, large: Mapping[str, StoredTable], suites: Suites, runner: PartRunner
) -> dict[str, dict[int, Judged | Counted]]:
    """Return by table and place what comes of all that can be looked at group by group.

    All tables are looked at in one go: a part has the rows of some groups in each of them.
    """
    of_tables: dict[str, _OfTable] = {}
    for name, table in large.items():
        its = _by_rows(stored, table, expectations_of(name, suites)).get(_WHOLE_GROUPS)
        if its:
            of_tables[name] = table, its
    if not of_tables:
        return {}
    needed: dict[str, list[str]] = {}
    for table, expected in of_tables.values():
        for other, columns in _needed(table, _WHOLE_GROUPS, expected).items():
            needed[other] = [*dict.fromkeys([*needed.get(other, ()), *columns, _GROUP])]
    with stored_parts(stored.tables, needed, GROUPS_AT_ONCE, runner.folder) as parts:
        found = runner.run(partial(_checked_groups, of_tables), parts).sums
    release_freed_memory()
    return {name: together([each[name] for each in found]) for name in of_tables}


def _checked_groups(
    of_tables: Mapping[str, _OfTable], rows: Mapping[str, pl.DataFrame]
) -> PartAnswer:
    """Return by table and place what comes of expectations in some groups."""
    found = {}
    for name, (table, expected) in of_tables.items():
        found[name] = _checked_part(table, expected, rows).sums
        if isinstance(rows, RowsByTable):
            # One table after the other is held, each with those that it is held against.
            rows.let_go()
    return PartAnswer({}, found)


def _rows_together(stored: _Stored, table: StoredTable, expected: Expectation) -> _Together | None:
    """Return which rows are looked at together; None where that is all of them."""
    is_there = all(name in table.schema.names for name in expected.columns)
    if not is_checked_here(expected) or not expected.columns or not is_there:
        return None
    kwargs, is_of_groups = expected.kwargs, stored.is_of_groups(table.name)
    if expected.type in ROW_BY_ROW:
        return _WHOLE_GROUPS if is_of_groups else _EACH_ROW
    across = [kwargs[name] for name in _ACROSS_ROWS if name in kwargs]
    other = kwargs.get("table")
    is_within = is_of_groups and (other is None or stored.is_of_groups(other))
    if is_within and across and all(_GROUP in names for names in across):
        return _WHOLE_GROUPS
    columns = tuple(kwargs.get("per", kwargs.get("columns", ())))
    if other is None:
        return _alike(_Together(columns), table.schema)
    if other == table.name or other not in stored.names:
        return None
    theirs = tuple(kwargs.get("other_columns", columns))
    return _alike(_Together(columns, other, theirs), table.schema, stored.schema(other))


def _alike(rows: _Together, *schemas: pa.Schema) -> _Together | None:
    """Return the same by those columns alone of which equal values are equal as texts, too."""
    names = [rows.columns, rows.other_columns][: len(schemas)]
    pairs = [
        each
        for each in zip(*names, strict=True)
        if all(
            name in schema.names and _is_plain(schema.field(name).type)
            for name, schema in zip(each, schemas, strict=True)
        )
    ]
    if not pairs:
        return None
    here, *there = (tuple(each) for each in zip(*pairs, strict=True))
    return rows._replace(columns=here, other_columns=there[0] if there else ())


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    )


@contextmanager
def _parts(
    stored: _Stored,
    table: StoredTable,
    rows: _Together,
    expected: Mapping[int, Expectation],
    runner: PartRunner,
) -> Iterator[Sequence[GroupPart]]:
    """Give the rows that are looked at together, and all that is said of them, part by part."""
    needed = _needed(table, rows, expected)
    if rows == _EACH_ROW:
        yield stored.some_rows(table.name, needed[table.name])
    else:
        by_name = {table.name: rows.columns, rows.other: rows.other_columns}
        laid = {
            name: GroupRows(map(polars_rows, stored.pieces(name, columns)), _as_text(by_name[name]))
            for name, columns in needed.items()
        }
        count = sum(stored.count(name) for name in needed)
        with group_parts(laid, parts_for(count, AT_ONCE), runner.folder) as parts:
            yield parts


def _needed(
    table: StoredTable, rows: _Together, expected: Mapping[int, Expectation]
) -> dict[str, list[str]]:
    """Return by table the columns that are read."""
    by = () if rows == _EACH_ROW else rows.columns
    needed = {table.name: _columns((*by, *table.key), expected.values(), table.schema)}
    for each in expected.values():
        if (other := each.kwargs.get("table")) is not None:
            names = each.kwargs.get("other_columns", each.kwargs["columns"])
            needed[other] = [*dict.fromkeys([*needed.get(other, ()), *names])]
    return needed


def _as_text(columns: Sequence[str]) -> pl.Expr:
    texts = [pl.col(name).cast(pl.String).fill_null("") for name in columns]
    return pl.concat_str(texts, separator="\0")


def _columns(key: Sequence[str], expected: Iterable[Expectation], schema: pa.Schema) -> list[str]:
    wanted = {*key, *(column for each in expected for column in each.columns)}
    return [each for each in schema.names if each in wanted]


def _checked_part(
    table: StoredTable, expected: Mapping[int, Expectation], rows: Mapping[str, pl.DataFrame]
) -> PartAnswer:
    """Return by place what comes of expectations in a part of a table."""

    def others(name: str, columns: Sequence[str]) -> list[pa.Table]:
        return [arrow_rows(rows[name].select(columns))]

    held = arrow_rows(rows[table.name])
    part = replace(table, rows=held, count=held.num_rows)
    return PartAnswer({}, checked(part, expected, others))


def _lots(space: Workspace, path: str) -> Iterator[list[int]]:
    """Yield numbers of the row groups of a file that are read together."""
    with reading(path), space.filesystem.open_input_file(path) as source:
        footer = pq.ParquetFile(source).metadata
        counts = {each: footer.row_group(each).num_rows for each in range(footer.num_row_groups)}
    yield from packed(counts, AT_ONCE)


def _row_groups(
    space: Workspace, name: str, path: str, columns: Sequence[str], numbers: Sequence[int]
) -> dict[str, pl.DataFrame]:
    with reading(path), space.filesystem.open_input_file(path) as source:
        rows = pq.ParquetFile(source).read_row_groups(list(numbers), columns=list(columns))
    return {name: polars_rows(rows.select(columns))}


class _Stored:
    """The tables of a workspace as their files have them."""

    def __init__(self, space: Workspace) -> None:
        self._space = space
        self.tables = StoredTables(space)
        self._places = dict(self._tables_in_folders())
        self._datasets: dict[str, ds.Dataset] = {}

    @property
    def names(self) -> list[str]:
        """Tables that are there and have a contract, but the one that is made of them."""
        return [each for each in self._places if each in tables() and each != NAME]

    def is_of_groups(self, name: str) -> bool:
        """Return whether each row of a table is of a group, by which it can be read."""
        if name not in self.names or tables()[name].kind not in KINDS:
            return False
        columns = tables()[name].columns
        return any(each.name == _GROUP and not each.nullable for each in columns)

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of the files."""
        return self._dataset(name).schema

    def table(self, name: str) -> StoredTable:
        """Return what is known of a table before its rows are read."""
        schema = self.schema(name)
        key = tables()[name].key
        return StoredTable(name, schema, schema.empty_table(), key, self.count(name))

    def count(self, name: str) -> int:
        """Return how many rows there are."""
        with reading(self._places[name]):
            return count_by_file(self._dataset(name))

    def read(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Read columns.

        Raises:
            KeyError: There is no such table.
        """
        with reading(self._places[name]):
            return self._dataset(name).to_table(columns=list(columns))

    def pieces(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Return the rows of a table some at a time; the first piece has none.

        Raises:
            KeyError: There is no such table, or column.
        """
        found = self._dataset(name)
        nothing = pa.schema([found.schema.field(each) for each in columns]).empty_table()
        batches = batches_by_file(found, columns)
        return chain([nothing], (pa.Table.from_batches([each]) for each in batches))

    def some_rows(self, name: str, columns: Sequence[str]) -> list[GroupPart]:
        """Return what reads some rows of a table each, and all together."""
        space = self.tables.workspace
        return [
            GroupPart(partial(_row_groups, space, name, path, columns, numbers))
            for path in self._dataset(name).files
            for numbers in _lots(space, path)
        ]

    def _dataset(self, name: str) -> ds.Dataset:
        if name not in self._datasets:
            with reading(self._places[name]):
                self._datasets[name] = ds.dataset(
                    self._places[name], filesystem=self._space.filesystem, format="parquet"
                )
        return self._datasets[name]

    def _tables_in_folders(self) -> Iterator[tuple[str, str]]:
        for folder in FOLDERS:
            selector = fs.FileSelector(self._space.path(folder), allow_not_found=True)
            infos = self._space.filesystem.get_file_info(selector)
            for each in sorted(infos, key=lambda each: each.base_name):
                if each.type is fs.FileType.Directory:
                    yield each.base_name, each.path


DATA_QUALITY: Final = Question(
    name="data_quality",
    needs=(),
    tables=(NAME,),
    settings=QualitySettings,
    answer=data_quality,
    of_all_groups=True,
    is_audited=False,
)
