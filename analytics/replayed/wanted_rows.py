"""Rows of Parquet files of which a few columns tell whether they are wanted.

Others are long, and of few rows: where no row of a row group is wanted, they are not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.tables.buckets import packed

_AT_ONCE: Final = 300_000
"""So many rows are looked at together, about."""


class Wanted(NamedTuple):
    """Which rows are wanted.

    Attributes:
        told_by: The columns that tell it.
        mask: Says it of each of some rows, of at least one, with those columns; for Spark a
            function of a module, or a partial of one.
    """

    told_by: Sequence[str]
    mask: Callable[[pa.Table], pa.ChunkedArray]

    def of(self, rows: pa.Table) -> pa.Table:
        """Return those of some rows that are wanted."""
        return rows.filter(self.mask(rows)) if rows.num_rows else rows

    def of_file(self, source: pa.NativeFile, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of the rows of a Parquet file that are wanted, in their order.

        Raises:
            KeyError: The file has no such column.
        """
        file = pq.ParquetFile(source)
        footer = file.metadata
        counts = {each: footer.row_group(each).num_rows for each in range(footer.num_row_groups)}
        for lot in packed(counts, _AT_ONCE):
            yield from self._of_row_groups(file, {each: counts[each] for each in lot}, columns)

    def _of_row_groups(
        self, file: pq.ParquetFile, counts: Mapping[int, int], columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        """Yield the same of row groups, of which it is known how many rows each has."""
        telling = file.read_row_groups(list(counts), columns=list(self.told_by))
        telling = telling.select(list(self.told_by))
        if not telling.num_rows:
            return
        mask = self.mask(telling)
        ends = dict(zip(counts, accumulate(counts.values()), strict=True))
        masks = {each: mask.slice(ends[each] - count, count) for each, count in counts.items()}
        some = [each for each, of_rows in masks.items() if pc.any(of_rows).as_py()]
        if not some:
            return
        rows = pa.concat_tables(
            telling.slice(ends[each] - counts[each], counts[each]) for each in some
        )
        rest = [each for each in columns if each not in self.told_by]
        if rest:
            others = file.read_row_groups(some, columns=rest)
            for name in rest:
                rows = rows.append_column(others.schema.field(name), others[name])
        kept = pa.chunked_array(
            [chunk for each in some for chunk in masks[each].chunks], pa.bool_()
        )
        yield rows.select(list(columns)).filter(kept)
