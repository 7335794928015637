"""Whether the tables of a workspace hold what is expected: contracts, our suites, a team's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.contracts import table_of
from analytics.errors import InputNotRecognizedError
from analytics.questions.answer import Answer
from analytics.questions.data_quality.great_expectations_engine import Engine
from analytics.questions.data_quality.judged_table import BROKEN, StoredTable, judged_tables
from analytics.questions.question import Question
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
MOST_ROWS: Final = 5_000_000
"""Rows of a table that are held in memory at once, as pandas has them."""
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


@dataclass(frozen=True)
class QualitySettings:
    """What of data quality is asked.

    Attributes:
        expectations: A folder with suites of a team's own.
        with_examples: Show a row that is not as expected, with the names in it.
    """

    expectations: str | None = None
    with_examples: bool = True


def data_quality(state: ReplayedWorkspace, settings: QualitySettings) -> Answer:
    """Return whether the tables of the workspace hold what is expected of them.

    Raises:
        InputNotRecognizedError: A file in the folder is no suite of a table there is.
        WorkspaceError: A table cannot be read.
    """
    suites = team_suites(settings.expectations)
    space = state.tables.workspace
    return Answer({NAME: data_quality_of(space, suites, has_examples=settings.with_examples)})


def data_quality_of(space: Workspace, suites: Suites, *, has_examples: bool = True) -> pa.Table:
    """Return the table `data_quality`: what is broken first, then what failed.

    Args:
        space: The workspace whose tables are judged.
        suites: A team's own expectations, by table.
        has_examples: Show a row that is not as expected, with the names in it.
    """
    stored = _Stored(space)
    judged = judged_tables(_with_expectations(stored, suites), stored.read, Engine())
    rows = [_unless_too_large(each) for each in judged]
    order = {name: place for place, name in enumerate(stored.names)}
    rows.sort(key=lambda each: (_ORDER[each["outcome"]], order[each["table"]]))
    if not has_examples:
        rows = [{**each, "example": None} for each in rows]
    return table_of(NAME, rows)


def _with_expectations(
    stored: _Stored, suites: Suites
) -> Iterator[tuple[StoredTable, Sequence[Expectation]]]:
    for name in stored.names:
        contract = tables()[name]
        expected = [
            *expected_by_contract(contract),
            *written_suites().get(name, ()),
            *suites.get(name, ()),
        ]
        schema, count = stored.schema(name), stored.count(name)
        wanted = {*contract.key, *(column for each in expected for column in each.columns)}
        there = [each for each in schema.names if each in wanted]
        is_held = count <= MOST_ROWS
        rows = stored.read(name, there) if is_held else schema.empty_table().select(there)
        yield StoredTable(name, schema, rows, contract.key, count), expected


def _unless_too_large(row: dict[str, Any]) -> dict[str, Any]:
    if row["rows"] <= MOST_ROWS or not row["columns"]:
        return row
    why = f"{row['rows']:,} rows are more than are checked ({MOST_ROWS:,})"
    return {**row, "outcome": BROKEN, "reason": why, "unexpected_count": None}


class _Stored:
    """The tables of a workspace as their files have them."""

    def __init__(self, space: Workspace) -> None:
        self._space = space
        self._places = dict(self._tables_in_folders())
        self._datasets: dict[str, ds.Dataset] = {}

    @property
    def names(self) -> list[str]:
        """Tables that are there and have a contract, but the one that is made of them."""
        return [each for each in self._places if each in tables() and each != NAME]

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of the files."""
        return self._dataset(name).schema

    def count(self, name: str) -> int:
        """Return how many rows there are."""
        with reading(self._places[name]):
            return int(self._dataset(name).count_rows())

    def read(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Read columns.

        Raises:
            KeyError: There is no such table.
        """
        with reading(self._places[name]):
            return self._dataset(name).to_table(columns=list(columns))

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
