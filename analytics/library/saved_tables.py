"""Tables of a run, added to tables of a catalog: audits of many weeks become a history.

Each table of a run has the columns of its contract, and `cluster`, `run_id` and `as_of`
(`schemas/tables/saved_runs.json`). It is partitioned by the first two; what belongs to a run is
overwritten as a whole and nothing else is touched, so a run that is saved twice is there once. The
row of a run in `saved_runs` goes before its tables are written, and comes after
([0019](../../docs/decisions/0019-a-run-is-a-partition.md)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pyarrow.dataset as ds

from analytics.errors import OutputRefusedError, SettingRefusedError
from schemas import table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.library.saved_runs import Run
    from analytics.workspace import Workspace
    from schemas.model import Column, Table

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


# The schema of a catalog that tables are saved to.

RUNS: Final = "saved_runs"
CLUSTER, RUN_ID, AS_OF = "cluster", "run_id", "as_of"
_PARTITIONED_BY: Final = (CLUSTER, RUN_ID)
_OF_EVERY_TABLE: Final = (CLUSTER, RUN_ID, AS_OF)

PARQUET: Final = "parquet"
_PART: Final = re.compile(r"[\w-]+")
_FORMAT: Final = re.compile(r"\w+")
_SHORT_INTEGER: Final = re.compile(r"\b(tiny|small)int\b")
_MOST_OF_ERROR: Final = 300
_NO_FORMAT: Final = "DATA_SOURCE_NOT_FOUND"
_OF_ANOTHER_SPARK: Final = re.compile(
    r"\b(NoSuch(Method|Field)|NoClassDefFound|IncompatibleClassChange|AbstractMethod"
    r"|UnsupportedClassVersion|Verify|BootstrapMethod)Error\b"
)
"""Java's errors of classes that were compiled against others than are there."""
_ROWS_OF_FILE: Final = 1_000_000
"""Each task writes a file, and a run has some sixty tables, most of them small."""


@dataclass(frozen=True)
class Target:
    """A schema, in which each table has its own name.

    Attributes:
        spark: A session that knows the catalog.
        schema: `SCHEMA` or `CATALOG.SCHEMA`.
        table_format: What tables that are not there yet are made as: "parquet", "delta",
            "iceberg", or another that the session has.
    """

    spark: SparkSession
    schema: str
    table_format: str = PARQUET

    def check(self) -> None:
        """Refuse what is no schema there, before any work is done for it.

        Raises:
            OutputRefusedError: There is no such schema, or no such catalog.
            SettingRefusedError: It, or the format, is written as none can be.
        """
        if not all(_PART.fullmatch(each) for each in self.schema.split(".")):
            raise SettingRefusedError(
                f"{self.schema!r} is no schema: write SCHEMA or CATALOG.SCHEMA, as in ops or "
                "lake.ops"
            )
        if _FORMAT.fullmatch(self.table_format) is None:
            raise SettingRefusedError(f"{self.table_format!r} is no format of tables")
        with self._refused():
            is_there = self.spark.catalog.databaseExists(self._quoted)
        if not is_there:
            raise OutputRefusedError(
                f"{self.schema}: there is no such schema in the catalogs of this session; CREATE "
                f"SCHEMA {self.schema} makes one"
            )

    def try_format(self) -> None:
        """Make `saved_runs` where it is not there, and read it: that needs what all tables need.

        Raises:
            OutputRefusedError: The session does not have the format, its package is for another
                Spark, or a table of that name has other columns.
        """
        lacks = self._missing_columns(RUNS)
        if lacks is None:
            self._prepare(RUNS, lacks)
        try:
            with self._refused(RUNS):
                self._cluster_ids("")
        except OutputRefusedError:
            if lacks is None:
                with suppress(OutputRefusedError), self._refused(RUNS):
                    self.spark.sql(f"DROP TABLE {self.place(RUNS)}")
            raise

    @property
    def _quoted(self) -> str:
        return ".".join(f"`{each}`" for each in self.schema.split("."))

    def place(self, name: str) -> str:
        """Return a table as SQL names it."""
        return f"{self._quoted}.`{name}`"

    def save(self, run: Run, frames: Mapping[str, DataFrame], rows: Mapping[str, int]) -> None:
        """Save tables of a run; those of the same run that are there go.

        Where it fails in between, `saved_runs` does not name what was not written whole, and once
        more does it all.

        Args:
            run: What they are of.
            frames: By name, with the columns of their contracts.
            rows: How many rows each has.

        Raises:
            OutputRefusedError: There is no such schema, the session does not have the format, a
                table there has other columns, or another cluster has that name there: then nothing
                is written.
        """
        self.check()
        new = {name: self._missing_columns(name) for name in (*frames, RUNS)}
        if new[RUNS] is not None:
            self._refuse_other_cluster(run)
        for name, columns in new.items():
            self._prepare(name, columns)
        earlier = self._saved_before(run)
        others = {name: count for name, count in earlier.items() if name not in frames}
        if len(others) < len(earlier):
            self._save_row(run, others)
        for name, frame in frames.items():
            self._overwrite(run, name, frame.coalesce(1 + rows[name] // _ROWS_OF_FILE))
        self._save_row(run, {**others, **{name: rows[name] for name in frames}})

    def _missing_columns(self, name: str) -> list[Column] | None:
        """Return the columns that a table lacks; None where it is not there.

        Raises:
            OutputRefusedError: It has columns that its contract has not, or of other types, or is
                not partitioned as it has to be.
        """
        place = self.place(name)
        with self._refused(name):
            if not self.spark.catalog.tableExists(place):
                return None
            there = {each.name: each.dataType for each in self.spark.table(place).schema.fields}
        contract = {each.name: each for each in columns_of(name)}
        others = [
            f"{each} {kind.simpleString()}"
            for each, kind in there.items()
            if each not in contract or kind.simpleString() not in _kept_as(contract[each].type)
        ]
        lacks = [each for each in contract.values() if each.name not in there]
        others += [f"no {each.name}" for each in lacks if each.name in _OF_EVERY_TABLE]
        if others:
            raise OutputRefusedError(
                f"{self.schema}.{name} has other columns than groupscope saves "
                f"({', '.join(others)}): save to another schema, or rename that table"
            )
        return lacks

    def _refuse_other_cluster(self, run: Run) -> None:
        """Refuse to put two clusters under one name: their histories would be one.

        Raises:
            OutputRefusedError: What was saved under it is of a cluster with another id.
        """
        ids = self._cluster_ids(run.cluster)
        own = set(run.row["cluster_ids"])
        if own and ids and not own & ids:
            raise OutputRefusedError(
                f"{self.schema}: tables of cluster {run.cluster} are those of "
                f"{', '.join(sorted(ids))}, and this dump is of {', '.join(sorted(own))}: give it "
                "another name (--cluster NAME)"
            )

    def _cluster_ids(self, cluster: str) -> set[str]:
        """Return the ids of what was saved under the name of a cluster."""
        kept = self.spark.table(self.place(RUNS)).where(f"{CLUSTER} = '{cluster}'")
        return {each for row in kept.select("cluster_ids").collect() for each in row["cluster_ids"]}

    def _prepare(self, name: str, columns: Sequence[Column] | None) -> None:
        """Make a table, or give one that is there the columns that its contract got since."""
        with self._refused(name):
            if columns is None:
                self.spark.sql(
                    f"CREATE TABLE {self.place(name)} ({_ddl(columns_of(name))}) "
                    f"USING {self.table_format} PARTITIONED BY ({', '.join(_PARTITIONED_BY)}) "
                    f"COMMENT {_quoted_text(table(name).about)}"
                )
            elif columns:
                self.spark.sql(f"ALTER TABLE {self.place(name)} ADD COLUMNS ({_ddl(columns)})")

    def _saved_before(self, run: Run) -> dict[str, int]:
        """Return how many rows the tables of the same run have that were saved."""
        kept = self.spark.table(self.place(RUNS)).where(
            f"{CLUSTER} = '{run.cluster}' and {RUN_ID} = '{run.run_id}'"
        )
        rows = kept.select("saved_tables").collect()
        return {each["table"]: each["rows"] for row in rows for each in row["saved_tables"]}

    def _save_row(self, run: Run, rows: Mapping[str, int]) -> None:
        """Let `saved_runs` say which tables of a run are there; of none, it has no row."""
        from pyspark.sql.types import StructType  # noqa: PLC0415 - heavy, as Spark is

        own = [each for each in columns_of(RUNS) if each.name not in _OF_EVERY_TABLE]
        saved = [{"table": name, "rows": count} for name, count in sorted(rows.items())]
        values = {**run.row, "saved_tables": saved}
        row = tuple(values[each.name] for each in own)
        schema = cast("StructType", StructType.fromDDL(_ddl(own)))
        frame = self.spark.createDataFrame([row] if rows else [], schema)
        self._overwrite(run, RUNS, frame.coalesce(1))

    def _overwrite(self, run: Run, name: str, frame: DataFrame) -> None:
        """Let a table have these rows of a run, and no others of it."""
        from pyspark.sql import functions as F  # noqa: PLC0415 - heavy, as Spark is

        place = self.place(name)
        rows = frame.withColumn(AS_OF, F.lit(run.as_of).cast("timestamp"))
        columns = [each for each in self.spark.table(place).columns if each not in _PARTITIONED_BY]
        with self._refused(name):
            self.spark.sql(
                f"INSERT OVERWRITE TABLE {place} "  # noqa: S608 - names that were checked
                f"PARTITION ({CLUSTER} = '{run.cluster}', {RUN_ID} = '{run.run_id}') "
                f"SELECT {', '.join(f'`{each}`' for each in columns)} FROM {{rows}}",
                rows=rows,
            )

    @contextmanager
    def _refused(self, name: str = "") -> Iterator[None]:
        """Say in one line what Spark refuses to do with a table, or with the schema.

        Raises:
            OutputRefusedError: It refuses.
        """
        from pyspark.errors import (  # noqa: PLC0415 - heavy, as Spark is
            AnalysisException,
            IllegalArgumentException,
            ParseException,
            UnsupportedOperationException,
        )

        place = f"{self.schema}.{name}" if name else self.schema
        try:
            yield
        except Exception as error:
            # Of several classes, by how the session is connected.
            if (misfit := _OF_ANOTHER_SPARK.search(str(error))) is not None:
                raise OutputRefusedError(
                    f"{place}: what this session has of that format, or of that catalog, was made "
                    f"for another Spark than {self.spark.version} ({misfit.group()}): start it "
                    "with the package for this one"
                ) from error
            if _NO_FORMAT in str(error):
                raise OutputRefusedError(
                    f"{place}: Spark has no such format of tables: start it with the package that "
                    "has it"
                ) from error
            refuses = (
                AnalysisException,
                IllegalArgumentException,
                ParseException,
                UnsupportedOperationException,
            )
            if not isinstance(error, refuses):
                raise
            words = " ".join(str(error).partition("\n")[0].split())
            raise OutputRefusedError(f"{place}: {words[:_MOST_OF_ERROR]}") from error


def columns_of(name: str) -> list[Column]:
    """Return the columns of a table that is saved: those of its contract, and those of a run."""
    of_run = [table(RUNS).column(each) for each in _OF_EVERY_TABLE]
    own = [each for each in table(name).columns if each.name not in _OF_EVERY_TABLE]
    return [*own, *of_run]


def _kept_as(type_name: str) -> tuple[str, str]:
    """Return what a format may keep a type as: Iceberg has no integers of less than four bytes."""
    return type_name, _SHORT_INTEGER.sub("int", type_name)


def _ddl(columns: Sequence[Column]) -> str:
    return ", ".join(
        f"`{each.name}` {each.type} COMMENT {_quoted_text(each.about)}" for each in columns
    )


def _quoted_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
