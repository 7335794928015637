"""Which partitions a group reads, has committed, or should be reading: one row for each.

A group's members own partitions, its commits name partitions, and its subscriptions name topics.
These three need not agree, and what they disagree on is what a lag hides: nobody reads what is
committed and unassigned; what was never committed has no offset to be behind of; what is committed
for a topic that the group no longer subscribes to grows for ever and matters to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.lag.movement import KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ASSIGNED: Final = "assigned"
UNASSIGNED: Final = "unassigned"
NEVER_COMMITTED: Final = "never_committed"
STALE: Final = "stale"

_OWNER: Final = ("member_id", "client_id", "client_host")
OWNER: Final = pl.Struct(dict.fromkeys(_OWNER, pl.String))
_OF_COMMIT: Final = ("committed_offset", "topic_id", "commit_timestamp", "complete", "missing")
_LAGGING_TYPES: Final = ("classic", "simple", "consumer", "streams")
"""Share groups commit nothing: their backlog is another question."""

_INPUTS: Final = {"group_id": pl.String, "subtopology_id": pl.String, "topic": pl.String}
_LOST: Final = {"group_id": pl.String, "why": pl.String}


def inputs_of(subtopologies: Mapping[str, Mapping[str, Sequence[str]]]) -> pl.DataFrame:
    """Return the topics that each subtopology of streams groups reads.

    Args:
        subtopologies: By group and subtopology.

    Returns:
        `group_id`, `subtopology_id`, `topic`.
    """
    rows = [
        (group, subtopology, topic)
        for group, its in subtopologies.items()
        for subtopology, topics in its.items()
        for topic in topics
    ]
    return pl.DataFrame(rows, _INPUTS, orient="row")


@dataclass(frozen=True)
class GroupTables:
    """State of whole groups at the instant; each table has the columns of its contract.

    Attributes:
        groups: `groups`.
        members: `members`.
        assignments: `assignments`.
        committed: `committed_offsets`.
        inputs: Of streams groups, the topics that each subtopology reads (`inputs_of`).
        lost: `group_id` and `why` an offset of it that is not there may have been committed all the
            same.
    """

    groups: pl.DataFrame
    members: pl.DataFrame
    assignments: pl.DataFrame
    committed: pl.DataFrame
    inputs: pl.DataFrame = field(default_factory=lambda: inputs_of({}))
    lost: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_LOST))


def read_partitions(tables: GroupTables, topics: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each partition that a group owns, has committed or subscribes to.

    Args:
        tables: Of the groups.
        topics: The table `topics`.

    Returns:
        In the order of `KEY`: `KEY`; `kind` (`assigned`, `unassigned`, `never_committed` or
        `stale`); `owners`, those of `OWNER` that own it, null where nobody does, and where there is
        just one its `member_id`, `client_id` and `client_host`; `committed_offset`, `topic_id`,
        `commit_timestamp`, `complete` and `missing` of the commit in force (null where there is
        none).
    """
    lagging = tables.groups.filter(pl.col("group_type").is_in(_LAGGING_TYPES)).select("group_id")
    committed, members, assignments = (
        each.join(lagging, "group_id", "semi")
        for each in (tables.committed, tables.members, tables.assignments)
    )
    owned = _by_partition(_owned(assignments, tables.inputs), members)
    subscribed = _subscribed(members)
    rows = owned.join(committed.select(*KEY, *_OF_COMMIT), KEY, "full", coalesce=True)
    awaited = _partitions_of(subscribed, topics).join(rows, KEY, "anti")
    rows = pl.concat([rows, awaited], how="diagonal")
    rows = rows.join(subscribed, ["group_id", "topic"], "left").join(
        _clarity(tables.members), "group_id", "left"
    )
    rows = rows.with_columns(_KIND.alias("kind")).drop("is_subscribed", "is_vague")
    rows = _with_lost(rows, tables.lost).sort(KEY)
    only = pl.when(pl.col("owners").list.len() == 1).then(pl.col("owners").list.first())
    return rows.with_columns(only.struct.field(name).alias(name) for name in _OWNER)


IS_OWNED: Final = pl.col("owners").is_not_null()
"""Whether a member owns a partition."""


def by_owner(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each owner of each partition: those of the owner in place of `owners`.

    Where nobody owns a partition it has one row, without an owner.
    """
    found = rows.drop(_OWNER, strict=False).explode("owners")
    return found.with_columns(
        pl.col("owners").struct.field(name).alias(name) for name in _OWNER
    ).drop("owners")


def _owned(assignments: pl.DataFrame, inputs: pl.DataFrame) -> pl.DataFrame:
    """Return the partitions that members own; of streams tasks those that active ones read."""
    given = assignments.filter(pl.col("kind") == "current")
    columns = (*KEY, "member_id")
    named = given.filter(pl.col("topic").is_not_null()).select(columns)
    tasks = given.filter(pl.col("role") == "active").drop("topic")
    read = tasks.join(inputs, ["group_id", "subtopology_id"]).select(columns)
    return pl.concat([named, read]).unique()


def _by_partition(owned: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return each owned partition once, with its `owners`."""
    details = members.select("group_id", *_OWNER)
    rows = owned.join(details, ["group_id", "member_id"], "left").sort(
        *KEY, "member_id", nulls_last=True
    )
    owner = pl.struct(pl.col(name).cast(pl.String) for name in _OWNER)
    return rows.group_by(KEY, maintain_order=True).agg(owner.alias("owners"))


def _subscribed(members: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, `topic`, `is_subscribed` (true): what members subscribe to by name."""
    named = members.select("group_id", pl.col("subscribed_topics").alias("topic")).explode("topic")
    named = named.filter(pl.col("topic").is_not_null()).unique()
    return named.with_columns(pl.lit(value=True).alias("is_subscribed"))


def _partitions_of(subscribed: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Return every partition of the topics that groups subscribe to, where its count is known."""
    there = topics.filter(pl.col("deleted_at").is_null() & (pl.col("partitions") > 0))
    sizes = there.group_by("topic").agg(pl.col("partitions").max())
    every = pl.int_ranges(0, "partitions", dtype=pl.Int32)
    wanted = subscribed.join(sizes, "topic").select("group_id", "topic", every.alias("partition"))
    return wanted.explode("partition")


def _clarity(members: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, and whether a member's subscription is not read, or a pattern.

    Such a member may subscribe to any topic.
    """
    is_vague = pl.col("subscribed_topics").is_null() | pl.col("subscribed_regex").is_not_null()
    return members.group_by("group_id").agg(is_vague.any().alias("is_vague"))


_KIND: Final = (
    pl.when(pl.col("committed_offset").is_null())
    .then(pl.lit(NEVER_COMMITTED))
    .when(IS_OWNED)
    .then(pl.lit(ASSIGNED))
    # Who has members, and knows what each subscribes to, knows what none of them does.
    .when((pl.col("is_vague") == pl.lit(value=False)) & pl.col("is_subscribed").is_null())
    .then(pl.lit(STALE))
    .otherwise(pl.lit(UNASSIGNED))
)


def _with_lost(rows: pl.DataFrame, lost: pl.DataFrame) -> pl.DataFrame:
    """Say of an offset that is not there that it may have been committed all the same."""
    rows = rows.join(lost, "group_id", "left")
    is_gone = pl.col("committed_offset").is_null() & pl.col("why").is_not_null()
    return rows.with_columns(
        pl.when(is_gone).then(pl.lit(value=False)).otherwise("complete").alias("complete"),
        pl.when(is_gone).then(pl.coalesce("missing", "why")).otherwise("missing").alias("missing"),
    ).drop("why")
