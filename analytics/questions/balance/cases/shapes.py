"""Cases that differ in names, times and settled epochs alone have one shape, and are judged once.

Assignors and judgement know a member by its place among the ids of members in order, by its place
in Java's map of them, and by its group instance id. An id that is not plain ASCII stands for
itself: Java and Python may put such ids in another order.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from analytics.assignors.java_order import bucket, table_size
from analytics.questions.balance.cases.case import CLASSIC
from analytics.replay.log.internal_partitions import string_hashes

SHAPE: Final = "shape"
MEMBER_IDS: Final = "member_ids"
_CASE: Final = "case"
_OF_CASE: Final = (
    *("group_type", "protocol_type", "protocol", "unread", "moved", "is_whole", "gap"),
    *("topics", "owned_before"),
)
_OF_MEMBER: Final = ("group_instance_id", "rack_id", "unread", "wants", "has")
_EPOCHS: Final = ("epoch", "assignment_epoch")
_STABLE: Final = "STABLE"
_PLACE: Final = "place_in_map"


def with_shapes(cases: pl.DataFrame) -> pl.DataFrame:
    """Add `shape` (a number) and `member_ids` (sorted) to cases.

    Args:
        cases: What `case_rows.case_of` reads, and `gap`: what the dump lacks of the group, or null.
    """
    cases = cases.with_row_index(_CASE)
    members = _members(cases)
    is_said = (pl.col("group_type") != CLASSIC) & ~pl.col("is_settled")
    epochs = (pl.when(is_said).then(each).alias(each) for each in _EPOCHS)
    known = [each for each in _OF_CASE if each in cases.columns]
    keys = (
        cases.select(_CASE, *_EPOCHS, *known)
        .with_columns(members.drop(_CASE))
        .select(_CASE, *known, *epochs, "members")
    )
    if "progress" in cases.columns:
        keys = keys.join(_progress(cases), on=_CASE, how="left", maintain_order="left")
    every = [each for each in keys.columns if each != _CASE]
    shapes = (
        keys.group_by(every, maintain_order=True)
        .agg(_CASE)
        .select(_CASE)
        .with_row_index(SHAPE)
        .explode(_CASE)
        .sort(_CASE)
    )
    ids = pl.col("members").list.eval(pl.element().struct.field("member_id"))
    return cases.with_columns(ids.alias(MEMBER_IDS), shapes[SHAPE]).drop(_CASE)


def _progress(cases: pl.DataFrame) -> pl.DataFrame:
    """Return `progress` in topics that members have: no other counts."""
    owned = (
        cases.select(_CASE, "members")
        .explode("members")
        .select(_CASE, pl.col("members").struct.field("has"))
        .explode("has")
        .select(_CASE, pl.col("has").struct.field("topic"))
        .unique()
    )
    return (
        cases.select(_CASE, "progress")
        .drop_nulls("progress")
        .explode("progress")
        .unnest("progress")
        .join(owned, on=[_CASE, "topic"], how="semi")
        .sort(_CASE, "topic", "partition")
        .group_by(_CASE)
        .agg(pl.struct("topic", "partition", "advance").alias("progress"))
    )


def _members(cases: pl.DataFrame) -> pl.DataFrame:
    """Return the members of each case without their ids: `case`, `members`, `is_settled`.

    A row a case, in order.
    """
    members = (
        cases.select(_CASE, "group_type", *_EPOCHS, "members").explode("members").unnest("members")
    )
    is_plain = pl.col("member_id").str.len_bytes() == pl.col("member_id").str.len_chars()
    # Of a classic group nothing is looked at that only a member says of epochs.
    is_late = pl.col("member_epoch").ne_missing(pl.col("assignment_epoch")) | (
        pl.col("state").fill_null(_STABLE) != _STABLE
    )
    is_classic = pl.col("group_type") == CLASSIC
    is_settled = ~is_late & (pl.col("epoch") <= pl.col("assignment_epoch"))
    about = pl.struct(
        _PLACE,
        pl.when(~is_plain).then("member_id").alias("odd_id"),
        pl.when(~is_classic).then(is_late).alias("is_late"),
        *_OF_MEMBER,
    )
    return (
        members.with_columns(_places(members))
        .group_by(_CASE, maintain_order=True)
        .agg(about.alias("members"), is_settled.fill_null(value=False).all().alias("is_settled"))
    )


def _places(members: pl.DataFrame) -> pl.Series:
    """Return the place of each member in Java's map of all members of its case.

    Those of a case are one after the other.
    """
    ids, case = members["member_id"], members[_CASE].to_numpy()
    distinct = ids.unique()
    hashes = ids.replace_strict(
        distinct, pl.Series(string_hashes(distinct)), return_dtype=pl.Int64
    ).to_numpy()
    _, first, of_case, counts = np.unique(
        case, return_index=True, return_inverse=True, return_counts=True
    )
    sizes = np.array([0] + [table_size(each) for each in range(1, counts.max(initial=0) + 1)])
    buckets = bucket(hashes, sizes[counts][of_case])
    places = np.empty(len(case), np.int64)
    # What shares a bucket comes in the order of ids.
    places[np.lexsort((buckets, of_case))] = np.arange(len(case)) - first[of_case]
    return pl.Series(_PLACE, places)
