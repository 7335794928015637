"""Decoded records as far as they are wanted, as frames of polars, without Spark.

They are those of the lines that are followed at the instant, of the groups and topics that are
asked for; `analytics.replay.log.cut_frames` cuts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.decode.selection import is_name, names_wanted
from analytics.decode.tables import CONTROL_MARKERS, decoded_schema, spark_schema
from analytics.tables.stored_tables import reading
from analytics.workspace import DECODED, DIVERGED
from jobs.runs.replay.records_at import from_offset
from schemas import all_record_types, record_types

if TYPE_CHECKING:
    from jobs.runs.replay.replayed import Replayed

_GROUPS: Final = ("group", "group_id")
_TOPICS: Final = ("topic",)
_WITH_GROUPS: Final = ("__consumer_offsets", "__share_group_state")
_A_FEW_AHEAD: Final = {"batch_readahead": 4, "fragment_readahead": 1}


@dataclass(frozen=True)
class CutRecords:
    """The decoded records of a replayed workspace."""

    replayed: Replayed

    def rows(
        self,
        name: str,
        fields: Mapping[str, str],
        topic: str,
        partitions: Collection[int] | None = None,
    ) -> pl.DataFrame:
        """Read a decoded table.

        Args:
            name: The table ("offset_commit").
            fields: What is read, by column: ``value.offset``; with `PLACE` it can be cut.
            topic: The internal topic that is read: of markers there are several.
            partitions: Those that are read; None is all.

        Returns:
            The columns.

        Raises:
            WorkspaceError: A file is damaged.
        """
        wanted = [pc.field("topic") == topic, *self._wanted(name)]
        if partitions is not None:
            wanted.append(pc.field("partition").isin(sorted(partitions)))
        columns = {column: pc.field(*field.split(".")) for column, field in fields.items()}
        found = []
        for where, conditions in self._on_lines(name):
            with reading(self.replayed.source.location):
                every = reduce(and_, [*wanted, *conditions])
                scanned = where.scanner(columns=columns, filter=every, **_A_FEW_AHEAD)
                found.append(pl.DataFrame(pl.from_arrow(scanned.to_table())))
        return pl.concat(found)

    def counts(self, names: Iterable[str]) -> dict[int, int]:
        """Return how many records of decoded tables each partition has, wanted or not."""
        found: Counter[int] = Counter()
        for name in names:
            for where, _ in self._on_lines(name):
                for batch in where.to_batches(columns=["partition"], **_A_FEW_AHEAD):
                    for row in pc.value_counts(batch["partition"]).to_pylist():
                        found[row["values"]] += row["counts"]
        return dict(found)

    def count(self, names: Iterable[str]) -> int:
        """Return how many records the files of decoded tables hold; none is read."""
        return sum(where.count_rows() for name in names for where, _ in self._on_lines(name))

    def _on_lines(self, name: str) -> Iterator[tuple[ds.Dataset, Sequence[pc.Expression]]]:
        """Yield where records are: what survived, and of a line that is followed what that has."""
        lines = self.replayed.lines
        left = [~from_offset(each.topic, each.partition, each.diverges_at) for each in lines]
        surviving = self._dataset(f"{DECODED}/{name}", name)
        yield surviving or ds.dataset(_schema(name).empty_table()), left
        for line in lines:
            for piece in line.pieces:
                other = self._dataset(f"{DIVERGED}/{piece.copy}/{DECODED}/{name}", name)
                if other is not None:
                    yield other, [from_offset(line.topic, line.partition, piece.first, piece.end)]

    def _dataset(self, folder: str, name: str) -> ds.Dataset | None:
        source = self.replayed.source
        path = source.path(folder)
        if source.filesystem.get_file_info(path).type is not fs.FileType.Directory:
            return None
        with reading(path):
            return ds.dataset(
                path, schema=_schema(name), filesystem=source.filesystem, format="parquet"
            )

    def _wanted(self, name: str) -> Iterator[pc.Expression]:
        """Yield which records of a table are of the groups and topics that are asked for."""
        if self._groups is not None and name in _keys(_GROUPS):
            yield pc.field("key", _keys(_GROUPS)[name]).isin(self._groups)
        if self._topics is not None and name in _keys(_TOPICS):
            yield pc.field("key", _keys(_TOPICS)[name]).isin(self._topics)

    @cached_property
    def _groups(self) -> pa.Array | None:
        selection = self.replayed.tables.selection
        return self._names(_GROUPS, selection.groups, selection.exclude_groups)

    @cached_property
    def _topics(self) -> pa.Array | None:
        return self._names(_TOPICS, self.replayed.tables.selection.topics, ())

    def _names(
        self, fields: Sequence[str], include: Sequence[str], exclude: Sequence[str]
    ) -> pa.Array | None:
        """Return the names that are wanted; None where all are."""
        if not (include or exclude):
            return None
        if include and all(is_name(each) for each in (*include, *exclude)):
            return pa.array([each for each in include if each not in exclude], pa.string())
        # Patterns are Python's: each distinct name is matched once.
        every: set[str] = set()
        for name, column in _keys(fields).items():
            for where, _ in self._on_lines(name):
                names = {"name": pc.field("key", column)}
                for batch in where.to_batches(columns=names, **_A_FEW_AHEAD):
                    every.update(pc.unique(batch["name"]).to_pylist())
        return pa.array(sorted(names_wanted(every, include, exclude, every)), pa.string())


def _keys(fields: Sequence[str]) -> dict[str, str]:
    """Return by decoded table the field of its key that is one of these."""
    return {
        kind.table: field.column
        for topic in _WITH_GROUPS
        for kind in record_types(topic).values()
        for field in kind.key.fields
        if field.column in fields and kind.read == "decode"
    }


def _schema(name: str) -> pa.Schema:
    if name == "control_markers":
        return spark_schema(CONTROL_MARKERS)
    kinds = all_record_types().values()
    return spark_schema(decoded_schema(next(kind for kind in kinds if kind.table == name)))
