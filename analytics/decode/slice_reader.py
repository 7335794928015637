"""Decoded rows of segments as tasks of Spark read them: one table, without files between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition

from analytics.decode.tables import LABEL
from analytics.decode.tasks import Settings, SliceReport, decode_slice, packed
from analytics.dump.files.model import Slice

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


class SliceReader(DataSourceReader):
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


class FilteringSliceReader(SliceReader):
    """The same, which takes filters: a reader that has this method is refused where it may not."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Skip slices that a filter on topic, partition or copy rules out; Spark checks again."""
        for each in filters:
            if isinstance(each, EqualTo | In) and each.attribute[0] in _PRUNING:
                value = _PRUNING[each.attribute[0]]
                wanted = {each.value} if isinstance(each, EqualTo) else set(each.value)
                self.slices = [one for one in self.slices if value(one) in wanted]
            yield each
