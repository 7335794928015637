"""What contestants made, compared before anything is timed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.contestants import Segment, plain_strings
from benchmarks.plain_columns import Emit, schema_of

Way = Callable[[Segment, Emit], None]


def assert_equal_columns(segment: Segment, one: Way, other: Way) -> int:
    """Compare all columns of all tables; returns the number of rows.

    Raises:
        AssertionError: They differ.
    """
    mine, theirs = tables(segment, one), tables(segment, other)
    assert mine.keys() == theirs.keys(), (mine.keys(), theirs.keys())
    for name, table in mine.items():
        for column in table.column_names:
            equal = table[column].equals(theirs[name][column])
            assert equal, f"{segment.path.name}: {name}.{column} differs"
    return sum(table.num_rows for table in mine.values())


def assert_equal_sums(segment: Segment, one: Way, other: Way) -> int:
    """Compare rows, nulls and sums of every leaf column; returns the number of rows.

    Raises:
        AssertionError: They differ.
    """
    mine, theirs = sums(segment, one), sums(segment, other)
    assert mine == theirs, {key: (mine[key], theirs[key]) for key in mine | theirs}
    return sum(
        count for (_, column, what), count in mine.items() if (column, what) == ("offset", "rows")
    )


def tables(segment: Segment, way: Way) -> dict[str, pa.Table]:
    """Return everything a contestant makes of a segment."""
    batches: dict[str, list[pa.RecordBatch]] = defaultdict(list)

    def keep(table: str, batch: pa.RecordBatch) -> None:
        schema = schema_of(table)
        batches[table].append(pa.RecordBatch.from_arrays(plain_strings(batch), schema=schema))

    way(segment, keep)
    return {name: pa.Table.from_batches(each).combine_chunks() for name, each in batches.items()}


def sums(segment: Segment, way: Way) -> Counter[tuple[str, str, str]]:
    """Return by (table, leaf column, what): rows, nulls, and the sum of numbers or of lengths."""
    found: Counter[tuple[str, str, str]] = Counter()

    def add(table: str, batch: pa.RecordBatch) -> None:
        for name, column in zip(batch.schema.names, plain_strings(batch), strict=True):
            for path, leaf in _leaves(name, column):
                found[table, path, "rows"] += len(leaf)
                found[table, path, "nulls"] += leaf.null_count
                found[table, path, "sum"] += _sum(leaf)

    way(segment, add)
    return found


def _leaves(path: str, column: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    if pa.types.is_struct(column.type):
        # What lies below a null struct is anything.
        for each in column.type:
            yield from _leaves(f"{path}.{each.name}", pc.struct_field(column, each.name))
    elif pa.types.is_list(column.type):
        yield from _leaves(f"{path}[]", column.flatten())
    else:
        yield path, column


def _sum(leaf: pa.Array) -> int:
    if pa.types.is_string(leaf.type) or pa.types.is_binary(leaf.type):
        leaf = pc.binary_length(leaf)
    elif pa.types.is_timestamp(leaf.type):
        leaf = leaf.cast(pa.int64())
    total = pc.sum(
        leaf.cast(pa.decimal128(38, 0) if leaf.type == pa.int64() else pa.int64())
    ).as_py()
    return int(total or 0)
