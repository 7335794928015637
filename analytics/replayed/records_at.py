"""Decoded records that count at the instant asked about, read with Arrow or as polars frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.engine.key_places import homes_in
from analytics.replay.dump.coverage import log_starts
from analytics.replay.dump.followed_lines import is_before_swaps, is_elsewhere
from analytics.replay.log.as_of import COMMITS, GROUPS, PLACE, cut, timeless_ends
from analytics.replayed.replayed_workspace import replayed_instant
from analytics.tables.decoded_records import from_offset, records_folder
from analytics.tables.record_reader import RecordReader
from analytics.workspace import BEFORE_SWAPS, DECODED, DIVERGED, reading
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_PLACE = ("topic", "partition", "offset", "timestamp")
_SNAPSHOT = ".checkpoint"


def records_at(
    replayed: ReplayedWorkspace,
    name: str,
    columns: Sequence[str],
    condition: pc.Expression | None = None,
) -> pa.Table:
    """Return the records of a decoded table in order of offset.

    Args:
        replayed: Says the instant, which lines are followed, and where decoded tables are.
        name: Of the decoded table.
        columns: What is needed; `partition` and `offset` are there too.
        condition: Which records; None is all.

    Returns:
        No rows where the workspace holds no decoded tables.
    """
    needed = list(dict.fromkeys([*_PLACE, *columns]))
    found = _on_lines(replayed, name, needed, [] if condition is None else [condition])
    ends = replayed.as_of["offsets"]
    if ends and found.num_rows:
        below = [
            offset < ends.get(f"{topic}-{partition}", offset + 1)
            for topic, partition, offset in zip(
                *(found[each].to_pylist() for each in ("topic", "partition", "offset")), strict=True
            )
        ]
        found = found.filter(pa.array(below))
    return found.sort_by([("partition", "ascending"), ("offset", "ascending")])


def _on_lines(
    replayed: ReplayedWorkspace, name: str, columns: list[str], required: list[pc.Expression]
) -> pa.Table:
    """Read what survived, and where another line is followed what that one has instead."""
    left = [from_offset(each.topic, each.partition, each.diverges_at) for each in replayed.lines]
    conditions, swapped = [*required, *(~each for each in left)], replayed.before_swaps
    found = []
    if swapped:
        before, of_them = f"{BEFORE_SWAPS}/{DECODED}/{name}", is_before_swaps(swapped)
        found.append(_read(replayed, before, columns, [*conditions, of_them]))
        conditions.append(is_elsewhere(swapped))
    found.append(_read(replayed, f"{DECODED}/{name}", columns, conditions))
    if not any(each is not None for each in found):
        return pa.table({column: pa.array([], pa.null()) for column in columns})
    for line in replayed.lines:
        for piece in line.pieces:
            where = from_offset(line.topic, line.partition, piece.first, piece.end)
            folder = f"{DIVERGED}/{piece.copy}/{DECODED}/{name}"
            found.append(_read(replayed, folder, columns, [*required, where]))
    return pa.concat_tables(
        [each for each in found if each is not None], promote_options="permissive"
    )


def _read(
    replayed: ReplayedWorkspace, folder: str, columns: list[str], conditions: list[pc.Expression]
) -> pa.Table | None:
    """Return records that are not later than the instant; None where there is no such table."""
    source = replayed.source
    path = records_folder(source, folder)
    if path is None:
        return None
    with reading(path):
        records = ds.dataset(path, filesystem=source.filesystem, format="parquet")
    time = replayed.as_of["time"]
    if time is not None:
        stamp = pa.scalar(datetime.fromisoformat(time), records.schema.field("timestamp").type)
        in_time = pc.field("timestamp").is_null() | (pc.field("timestamp") <= stamp)
        for each in replayed.frames:
            # A log whose times go back is cut at an offset, whatever the times before it say.
            is_there = pc.field("topic") == each["topic"]
            is_there &= pc.field("partition") == each["partition"]
            if each["topic"] == CLUSTER_METADATA:
                # A snapshot counts by its own time.
                is_there &= ~pc.ends_with(pc.field("segment").cast(pa.string()), _SNAPSHOT)
            in_time |= is_there
            in_time &= ~is_there | (pc.field("offset") < each["possible_end"])
        conditions = [*conditions, in_time]
    where = None
    for each in conditions:
        where = each if where is None else where & each
    with reading(path):
        return records.to_table(columns=columns, filter=where)


class CountedRecords:
    """The records of a replayed workspace that count, of the groups that are asked about."""

    def __init__(self, state: ReplayedWorkspace) -> None:
        self._source = CutRecords(state)
        self._instant = replayed_instant(state.as_of, state.frames)
        self._log_starts = log_starts(state.manifest) if self._instant.is_end else {}

    def rows(
        self, name: str, fields: Mapping[str, str], topic: str = CONSUMER_OFFSETS
    ) -> pl.DataFrame:
        """Read a decoded table.

        Args:
            name: The table ("group_metadata").
            fields: What is read, by column: ``value.generation``; of the metadata log `segment`,
                too.
            topic: The internal topic.

        Raises:
            WorkspaceError: A file is damaged.
        """
        found = self._source.rows(name, {**fields, **PLACE}, topic)
        ends = self._timeless_ends if found["_timestamp"].null_count() else {}
        return cut(found, self._instant, log_starts=self._log_starts, timeless_ends=ends)

    @cached_property
    def _timeless_ends(self) -> Mapping[tuple[str, int], int]:
        """From where on records without a time are later: hardly any dump has one."""
        names = ("topic", "partition", "offset", "timestamp", "value")
        fields = {name: name for name in names}
        read = self._source.rows
        whole = {each: read(each, fields, CONSUMER_OFFSETS) for each in (COMMITS, GROUPS)}
        return timeless_ends(whole, self._instant)


class CutRecords(RecordReader):
    """A reader of the records that a replay is about."""

    def __init__(self, state: ReplayedWorkspace, partitions: Sequence[int] = ()) -> None:
        super().__init__(
            state.source,
            state.lines,
            state.tables.selection,
            partitions=partitions,
            homes=homes_in(state.manifest),
            before_swaps=state.before_swaps,
        )
