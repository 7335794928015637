"""The fold of group records as frames: each partition of ``__consumer_offsets`` is one log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.key_order import in_key_order
from analytics.replay.groups.columns import COMMIT, RECORDS, STATE
from analytics.replay.groups.fold import AT_ONCE, group_state
from analytics.replay.groups.group_records import GROUP, GROUP_KEY
from analytics.replay.log.arrow_rows import arrow_rows, polars_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.rules import ReplayRules

_KINDS: Final = ("a_group", "a_member", "an_assignment")
_IS_GONE: Final = reduce(and_, (pc.field(each).is_null() for each in _KINDS))


@dataclass(frozen=True)
class GroupState:
    """What the coordinators keep of groups at an instant.

    Attributes:
        rows: By column of `STATE` (``a_group``, ``a_member``, ``an_assignment``) its rows:
            `GROUP_KEY` and the fields of that column.
        removed_groups: `GROUP_KEY` of the groups that are gone, of which nothing else is kept.
        committed: The groups with a commit since they were last removed, in effect or not:
            `coordinator_partition`, `group_id`, `offset` (of the first). None where offsets alone
            make a group, before 4.0.
    """

    rows: Mapping[str, pl.DataFrame]
    removed_groups: pl.DataFrame
    committed: pl.DataFrame | None


def folded_groups(log: pl.DataFrame, decoded: Decoded, rules: ReplayRules) -> GroupState:
    """Fold the records about groups.

    Args:
        log: Of `coordinator_log`, cut at an instant.
        decoded: The decoded tables, cut likewise, of the same groups.
        rules: Of the release.
    """
    records = log.with_columns(pl.col("position").struct.field("leader_epoch")).select(
        RECORDS.names
    )
    committed = None
    if rules.groups_end_by_tombstones:
        committed = _committed(decoded["offset_commit"], log)
        made = committed.with_columns(
            kind=pl.lit(COMMIT, pl.Int32()), is_tombstone=pl.lit(value=False)
        )
        records = pl.concat([records, made], how="diagonal")
    rows = list(group_state(_in_order(records), rules))
    gone = pa.Table.from_batches(rows, STATE).filter(_IS_GONE).select(GROUP_KEY)
    return GroupState(
        {each: _rows_of_kind(rows, each) for each in _KINDS}, polars_rows(gone), committed
    )


def groups_gone(state: GroupState) -> pl.DataFrame | None:
    """Return the groups whose offsets outlive them: nothing is answered for them.

    The tombstone of a group leaves its offsets in memory (``OffsetMetadataManager``), where
    nobody is told of them until a commit or a member makes the group again. Brokers delete the
    offsets first, or write what replaces the group in the same batch; where compaction took that,
    the coordinator that loads what is left has the offsets and no group.
    """
    if state.committed is None:
        return None
    return state.removed_groups


def _rows_of_kind(batches: Sequence[pa.RecordBatch], what: str) -> pl.DataFrame:
    """Return what rows of `STATE` keep of one kind; a batch seldom has rows of several."""
    names = [*GROUP_KEY, what]
    some = [each.select(names) for each in batches if each.column(what).null_count < each.num_rows]
    schema = pa.schema([STATE.field(name) for name in names])
    kept = polars_rows(pa.Table.from_batches(some, schema))
    return kept.filter(pl.col(what).is_not_null()).unnest(what)


def _in_order(records: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield rows of `RECORDS` partition after partition; only some lie there as Arrow at a time."""
    # To take lists out of many pieces costs as much as to put these together, every time.
    records = in_key_order(records.rechunk(), (GROUP_KEY[0], "offset"))
    for start in range(0, records.height, AT_ONCE):
        yield from arrow_rows(records.slice(start, AT_ONCE)).combine_chunks().to_batches()


def _committed(commits: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    """Return the first commit of each group since a tombstone of a group, of any type."""
    removed = (
        log.filter((pl.col("role") == GROUP) & pl.col("is_tombstone"))
        .group_by(GROUP_KEY)
        .agg(removed_at=pl.col("offset").max())
    )
    return (
        commits.lazy()
        .filter(~pl.col("is_tombstone"))
        .select(
            pl.col("partition").alias(GROUP_KEY[0]),
            pl.col("key").struct.field("group").alias(GROUP_KEY[1]),
            "offset",
        )
        .join(removed.lazy(), GROUP_KEY, "left")
        .filter(pl.col("removed_at").is_null() | (pl.col("offset") > pl.col("removed_at")))
        .group_by(GROUP_KEY)
        .agg(pl.col("offset").min())
        .collect()
    )
