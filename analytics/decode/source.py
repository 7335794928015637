"""A Spark Python data source over dumps, for people who want a DataFrame.

``spark.dataSource.register(KafkaDump)``, then
``spark.read.format("kafka_dump").option("table", "offset_commit").load(path)``.

Options: ``table`` (a decoded table, ``control_markers`` or ``undecoded``; default
``offset_commit``), ``columns`` (comma-separated; Spark prunes nothing here), ``line`` (a copy whose
line did not survive; default the surviving line), ``preferCopy``, ``strictHighWatermark``,
``pushFilters`` (``true``: filters on topic, partition and copy skip whole segments; Spark wants
``spark.sql.python.filterPushdown.enabled`` for that, and refuses every read where it is off).
Logs are read; archived rows and workspaces are an error that says what reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    In,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.decode.elections import known_leaders
from analytics.decode.records.tables import LABEL, schema_of_dump, table_schema
from analytics.decode.tasks import Settings, SliceReport, decode_slice, packed
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.copies.slices import Edges
from analytics.dump.files.inputs import Inputs, recognize
from analytics.dump.files.model import Slice
from analytics.errors import InputNotRecognizedError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PRUNING: dict[str, Callable[[Slice], object]] = {
    "topic": lambda each: each.topic,
    "partition": lambda each: each.partition,
    "copy": lambda each: each.copy,
}


class SlicePartition(InputPartition):
    """Some slices of segments, read by one Spark task."""

    def __init__(self, slices: list[Slice]) -> None:
        super().__init__(slices[0].segment.name)
        self.slices = slices


class KafkaDump(DataSource):
    """The data source ``kafka_dump``."""

    @classmethod
    def name(cls) -> str:
        """Return the name to use in ``format``."""
        return "kafka_dump"

    def schema(self) -> StructType:
        """Return the table's columns, or those that ``columns`` names."""
        return from_arrow_schema(self._arrow_schema)

    def reader(self, schema: StructType) -> KafkaDumpReader:  # noqa: ARG002 - ours is exact
        """Plan the dump's slices.

        Raises:
            InputNotRecognizedError: The path holds other things than logs, or nothing known.
            InputUnreadableError: The system refuses to read it.
        """
        inputs = recognize(self._paths())
        _check_logs(inputs)
        options = PlanOptions(
            prefer_copy=self.options.get("prefercopy"),
            edges=Edges(
                strict_high_watermark=self.options.get("stricthighwatermark", "false") == "true"
            ),
        )
        line = self.options.get("line", "")
        slices = [each for each in plan(inputs, options, known_leaders).slices if each.line == line]
        is_pushed = self.options.get("pushfilters", "false") == "true"
        kind = FilteringReader if is_pushed else KafkaDumpReader
        return kind(self._table, self._arrow_schema, slices)

    @property
    def _table(self) -> str:
        return self.options.get("table", "offset_commit")

    @cached_property
    def _arrow_schema(self) -> pa.Schema:
        schema = schema_of_dump(table_schema(self._table))
        wanted = [each.strip() for each in self.options.get("columns", "").split(",")]
        return pa.schema([schema.field(name) for name in wanted if name]) if any(wanted) else schema

    def _paths(self) -> list[str]:
        path = self.options.get("path")
        if path is None:
            message = "kafka_dump needs load(PATH)"
            raise ValueError(message)
        return [path]


def _check_logs(inputs: Inputs) -> None:
    """Refuse what is there and is not read here: no rows would look as if there were none.

    Raises:
        InputNotRecognizedError: There are archived rows, or a workspace.
    """
    if inputs.raw_rows:
        raise InputNotRecognizedError(
            f"{inputs.raw_rows[0].argument}: archived rows, which kafka_dump does not read: "
            f"replay them with open_dump(...).replay(spark), or decode them into tables first"
        )
    if inputs.workspaces:
        raise InputNotRecognizedError(
            f"{inputs.workspaces[0]}: a workspace, which kafka_dump does not read: its tables are "
            f"Parquet, as in spark.read.parquet('{inputs.workspaces[0]}/decoded/offset_commit')"
        )


class KafkaDumpReader(DataSourceReader):
    """Yields one table's rows of each slice as Arrow batches."""

    def __init__(self, table: str, schema: pa.Schema, slices: list[Slice]) -> None:
        self.table = table
        self.schema = schema
        self.slices = slices

    def partitions(self) -> Sequence[InputPartition]:
        """Pack small segments together; Spark wants at least one partition."""
        tasks = packed(self.slices)
        filled = [SlicePartition([self.slices[number] for number in task]) for task in tasks]
        return filled or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Decode slices and keep one table."""
        settings, wanted = Settings("", digest=False), frozenset([self.table])
        for each in partition.slices if isinstance(partition, SlicePartition) else ():
            for decoded in decode_slice(each, settings, SliceReport(0), wanted):
                batch = decoded.batches.get(self.table)
                if batch is not None:
                    yield self._exact(batch)

    def _exact(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            column.dictionary_decode() if column.type == LABEL else column
            for column in (batch.column(name) for name in self.schema.names)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class FilteringReader(KafkaDumpReader):
    """The same, which takes filters: a reader that has this method is refused where it may not."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Skip slices that a filter on topic, partition or copy rules out; Spark checks again."""
        for each in filters:
            if isinstance(each, EqualTo | In) and each.attribute[0] in _PRUNING:
                value = _PRUNING[each.attribute[0]]
                wanted = {each.value} if isinstance(each, EqualTo) else set(each.value)
                self.slices = [one for one in self.slices if value(one) in wanted]
            yield each
