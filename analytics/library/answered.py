"""What a question was answered with, as a notebook has it: each table an attribute."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pyarrow.dataset as ds

from analytics.gaps.gap import TABLE as GAPS
from analytics.gaps.gap import gap_rows
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.tables.parted_table import PartedTable, PartedTables
from analytics.tables.stored_tables import folder_of
from analytics.workspace import Workspace
from schemas import table
from schemas.names import did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from analytics.questions.answer import Answer
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.table_contract import Table

# Tables of a workspace as DataFrames, by their contracts.

ROWS_AS_VALUES = 2_000
"""Up to so many rows are handed to Spark as values instead of files.

Opening files again in every query costs more than such a table holds, and only of values does the
optimizer know that there are none: it then leaves out what an empty table would be joined to.
"""


def table_frame(
    spark: SparkSession, workspace: Workspace, folder: str, contract: Table
) -> DataFrame:
    """Return a table of a workspace.

    Args:
        spark: The session.
        workspace: Where it is.
        folder: Its folder there ("decoded/offset_commit").
        contract: Its columns; those that its files lack are null.
    """
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - heavy, as Spark is
    from pyspark.sql.types import StructType  # noqa: PLC0415

    schema = cast("StructType", StructType.fromDDL(contract.ddl(not_null=False)))
    files = ds.dataset(
        workspace.path(folder),
        schema=to_arrow_schema(schema, timezone="UTC"),
        filesystem=workspace.filesystem,
        format="parquet",
    )
    if files.count_rows() <= ROWS_AS_VALUES:
        values: DataFrame = spark.createDataFrame(files.to_table(), schema)
        return values
    return spark.read.schema(schema).parquet(workspace.table(folder))


class Answered:
    """An answer; `answer.assignment_balance` is a table of it, `answer.tables` has their names.

    With a session a table is a DataFrame of Spark, without one of polars, with the columns of its
    contract (docs/tables.md) and times in UTC. `to_polars` and `to_pandas` give it as that.

    Attributes:
        question: The name of the question.
        cannot_tell: What the dump does not hold the answer to, in the words of the command, one
            sentence each. Where it names a group, a row that is absent proves nothing.
        gaps: The same as a table, by code: where, what, and why (docs/gaps.md).
        warnings: What may change how the tables are read, one sentence each.
        statements: By which rules and settings the question was answered, one sentence each.
        summary: What the command's JSON has beside the tables.
    """

    def __init__(
        self, question: str, answer: Answer, state: ReplayedWorkspace, spark: SparkSession | None
    ) -> None:
        self.question = question
        self.cannot_tell: tuple[str, ...] = answer.cannot_tell
        self.warnings: tuple[str, ...] = answer.warnings
        self.statements: tuple[str, ...] = answer.statements
        self.summary: Mapping[str, Any] = answer.summary
        self._figures = answer.figures
        self._rows: Mapping[str, pa.Table] = answer.tables
        self._counts = {name: answer.rows(name).num_rows for name in answer.tables}
        self._frames: dict[str, Any] = {}
        self._gap_rows = gap_rows({question: answer.gaps})
        if spark is not None:
            self._frames = _frames(
                {**answer.long_tables, GAPS: PartedTable.held(self._gap_rows)}, state, spark
            )

    @property
    def figures(self) -> Mapping[str, Any]:
        """What the command's text is made of beside the tables, as it is; tables are Arrow's."""
        return {
            name: each.whole() if isinstance(each, PartedTable) else each
            for name, each in self._figures.items()
        }

    @property
    def gaps(self) -> Any:  # noqa: ANN401 - of Spark, or of polars
        """What the dump does not hold the answer to, a row each: the table `gaps`."""
        if GAPS in self._frames:
            return self._frames[GAPS]
        return pl.DataFrame(pl.from_arrow(self._gap_rows))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._rows)

    def table(self, name: str) -> Any:  # noqa: ANN401 - of Spark, or of polars
        """Return a table by name.

        Raises:
            KeyError: The answer has no such table.
        """
        self._check(name)
        return self._frames[name] if name in self._frames else self.to_polars(name)

    def to_arrow(self, name: str) -> pa.Table:
        """Return a table as Arrow has it.

        Raises:
            KeyError: The answer has no such table.
        """
        self._check(name)
        return self._rows[name]

    def to_polars(self, name: str) -> pl.DataFrame:
        """Return a table as a DataFrame of polars.

        Raises:
            KeyError: The answer has no such table.
        """
        return pl.DataFrame(pl.from_arrow(self.to_arrow(name)))

    def to_pandas(self, name: str) -> pd.DataFrame:
        """Return a table as a DataFrame of pandas.

        Raises:
            KeyError: The answer has no such table.
        """
        frame: pd.DataFrame = self.to_arrow(name).to_pandas()
        return frame

    def _check(self, name: str) -> None:
        if name not in self._rows:
            hint = did_you_mean(name, self._rows, "there are")
            raise KeyError(f"the answer to {self.question} has no table {name!r}: {hint}")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of Spark, or of polars
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._rows]

    def __repr__(self) -> str:
        tables = ", ".join(f"{name}: {rows:,}" for name, rows in self._counts.items())
        return f"<answer to {self.question}: {tables}{self._gaps()}>"

    def _gaps(self) -> str:
        number = len(self.cannot_tell)
        return f"; {number:,} {'thing' if number == 1 else 'things'} it cannot tell" * bool(number)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{rows:,}</td></tr>"
            for name, rows in self._counts.items()
        )
        items = "".join(f"<li>{escape(each)}</li>" for each in self.cannot_tell)
        gaps = f"<p>cannot tell:</p><ul>{items}</ul>" if items else ""
        heads = "<tr><th>table</th><th>rows</th></tr>"
        return f"<p><b>{escape(self.question)}</b></p><table>{heads}{rows}</table>{gaps}"


def _frames(
    tables: Mapping[str, PartedTable], state: ReplayedWorkspace, spark: SparkSession
) -> dict[str, Any]:
    """Return tables as DataFrames; files behind them stay as long as the dump is open."""
    beside = Path(state.tables.workspace.location).parent
    space = Workspace(tempfile.mkdtemp(prefix="answers-", dir=beside))
    keep_evaluations(space, PartedTables(tables), state)
    return {name: table_frame(spark, space, folder_of(name), table(name)) for name in tables}


def shown_tables(tables: Sequence[str]) -> str:
    """Return the tables of a state as a notebook shows them."""
    return "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in tables) + "</ul>"
