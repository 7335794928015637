"""The lag of each partition, and what that one number hides.

Kafka's tools print end - committed, whatever lies between: records that retention has deleted
meanwhile, an offset beyond the end, an offset that was committed for another topic of that name.
Here each is a number of its own, and nothing is clamped:

    lag = offsets_below_start + records_to_read - offsets_beyond_end
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.gaps.gap import PASSED_OVER, words_expression
from analytics.questions.lag.movement import KEY
from analytics.replay.topics import RECORD, SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Which partitions a group reads, has committed, or should be reading: one row for each.
#
# A group's members own partitions, its commits name partitions, and its subscriptions name
# topics. These three need not agree, and what they disagree on is what a lag hides: nobody reads
# what is committed and unassigned; what was never committed has no offset to be behind of; what
# is committed for a topic that the group no longer subscribes to grows for ever and matters to
# nobody.

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


NO_END: Final = "where the log ends at that instant is not known"
FROM_START: Final = "never committed: counted from the log start"
BELOW_ZERO: Final = "an offset below 0 was committed, which is none: counted from the log start"
REMOVED: Final = "its offset was removed: counted from the log start"
NO_START: Final = "never committed, and where the log starts is not known"
NOT_TOLD: Final = "a record that is missing from the dump may have changed it"
BETWEEN: Final = "whether anything was left to read: the log ended, by its time index, between"
INTERPOLATED: Final = "the end is interpolated: by the log's time index it was between"
OTHER_LOG: Final = "committed for another topic of that name: the offset belongs to another log"
READ_BEFORE: Final = (
    "{} had been committed before: nothing unread was deleted; a reader goes on where "
    "auto.offset.reset says"
)
NOT_KNOWN: Final = "whether what was deleted had been read is not known: "
A_GAP: Final = "commits before this one are missing"
HELD_BACK: Final = (
    "a transaction is open from where it has committed on: who reads committed records only is "
    "given nothing"
)

STABLE: Final = {
    "topic": pl.String,
    "partition": pl.Int32,
    "log_end_offset": pl.Int64,
    "last_stable_offset": pl.Int64,
}
"""Where logs end for readers of committed records, of one copy a partition."""
LACKING: Final = {"group_id": pl.String, "why": pl.String}
"""Groups whose earlier commits may be missing, and why."""

_PLACE: Final = ["topic", "partition"]
_STABLE: Final = "last_stable_offset"


def partition_lag(rows: pl.DataFrame, ends: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Add where logs start and end, and the lag.

    Args:
        rows: As `read_partitions` returns them.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` at the instant; where that
            is interpolated `log_end_bound`, `log_end_least`, `log_end_most`; of a snapshot
            `first_end_offset` and `later_end_offset` (`with_first_ends`).
        topics: The table `topics`: `topic`, `topic_id`, `deleted_at`.

    Returns:
        The rows with `log_start_offset`, `log_end_offset`; `lag` (Kafka's number; of a partition
        that was never committed what its log holds; below zero only where the commit is beyond the
        end); `offsets_below_start`, `records_to_read`, `offsets_beyond_end`; `is_other_log`; and
        `reason`, why a number is null or counted otherwise.
    """
    rows = rows.join(_bounded(ends), _PLACE, "left", maintain_order="left")
    rows = _at_first_ends(rows)
    rows = _with_other_logs(rows, topics)
    is_untold = ~pl.col("complete").fill_null(value=True)
    is_never = (pl.col("kind") == NEVER_COMMITTED) & ~is_untold
    rows = rows.with_columns(
        pl.when(~is_untold).then("committed_offset").alias("committed_offset"),
        is_untold.alias("is_untold"),
        is_never.alias("is_never"),
    )
    start, end = pl.col("log_start_offset"), pl.col("log_end_offset")
    committed = pl.col("committed_offset")
    is_unsure = committed.is_between("log_end_least", "log_end_most").fill_null(value=False)
    position = pl.when("is_never").then(start).otherwise(committed)
    rows = rows.with_columns(
        is_unsure.alias("is_unsure"),
        pl.when(~(pl.col("is_other_log") | is_unsure)).then(position).alias("position"),
    )
    position = pl.col("position")
    begun = pl.when(position.is_not_null()).then(pl.max_horizontal(position, start))
    until = pl.when(end.is_not_null()).then(pl.max_horizontal(end, start))
    is_open = start.is_null() & (end > begun)
    rows = rows.with_columns(
        (end - position).alias("lag"),
        (start - position).clip(0).alias("offsets_below_start"),
        pl.when(~is_open).then((end - begun).clip(0)).alias("records_to_read"),
        (position - until).clip(0).alias("offsets_beyond_end"),
        _WHY.alias("reason"),
    )
    return rows.drop("is_untold", "is_never", "is_unsure", "position")


def _at_first_ends(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the ends of a snapshot's instant.

    Only a commit that came after that shows that its log had grown so far by then.
    """
    names = ["first_end_offset", "later_end_offset"]
    if not set(names) <= set(rows.columns):
        return rows
    first, end, committed = (pl.col(each) for each in (names[0], "log_end_offset", _OF_COMMIT[0]))
    until = pl.when(committed.is_not_null()).then(pl.min_horizontal(end, committed))
    shown = pl.max_horizontal(first, until)
    is_later = (end == pl.col(names[1])).fill_null(value=False)
    return rows.with_columns(
        pl.when(is_later & (end > first)).then(shown).otherwise(end).alias("log_end_offset")
    ).drop(names)


def named_by_cluster(topics: pl.DataFrame) -> pl.DataFrame:
    """Return the topics there are: of a name that a snapshot has, those that records name are gone.

    Args:
        topics: The table `topics` at the end of a dump.
    """
    is_named = (pl.col("source") == SNAPSHOT) & pl.col("topic_id").is_not_null()
    named = topics.filter(is_named).select("topic").to_series()
    return topics.filter(~((pl.col("source") == RECORD) & pl.col("topic").is_in(named.implode())))


def _bounded(ends: pl.DataFrame) -> pl.DataFrame:
    """Return ends with how sure they are; those that say nothing of it are what they say."""
    if "log_end_bound" in ends.columns:
        return ends
    bound = pl.when(pl.col("log_end_offset").is_not_null()).then(pl.lit("exact"))
    number = pl.lit(None, pl.Int64)
    return ends.with_columns(
        bound.alias("log_end_bound"), number.alias("log_end_least"), number.alias("log_end_most")
    )


def _with_other_logs(rows: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Add whether an offset was committed for an id that the topic of that name has no more.

    (KIP-516). False where either id is not known, or several are.
    """
    there = topics.filter(pl.col("deleted_at").is_null() & pl.col("topic_id").is_not_null())
    ids = there.group_by("topic").agg(
        pl.col("topic_id").max().alias("id_now"), pl.col("topic_id").n_unique().alias("ids")
    )
    rows = rows.join(ids.filter(pl.col("ids") == 1), "topic", "left", maintain_order="left")
    is_other = (pl.col("topic_id") != pl.col("id_now")).fill_null(value=False)
    return rows.with_columns(is_other.alias("is_other_log")).drop("id_now", "ids")


_BOUNDS: Final = pl.format("{} and {}", "log_end_least", "log_end_most")
_WHY: Final = (
    pl.when("is_untold")
    .then(pl.coalesce("missing", pl.lit(NOT_TOLD)))
    .when("is_other_log")
    .then(pl.lit(OTHER_LOG))
    .when("is_unsure")
    .then(pl.format(BETWEEN + " {}", _BOUNDS))
    .when(pl.col("log_end_offset").is_null())
    .then(pl.lit(NO_END))
    .when(pl.col("is_never") & pl.col("log_start_offset").is_null())
    .then(pl.lit(NO_START))
    .when(pl.col("is_never") & pl.col("commit_timestamp").is_not_null())
    .then(pl.lit(BELOW_ZERO))
    .when("is_never")
    .then(pl.lit(FROM_START))
    .when(pl.col("log_end_least").is_not_null())
    .then(pl.format(INTERPOLATED + " {}", _BOUNDS))
)


def with_first_commits(
    rows: pl.DataFrame, progress: pl.DataFrame, lacking: pl.DataFrame
) -> pl.DataFrame:
    """Add `offsets_below_first`, and say so where a group had committed to the topic before.

    A group that reads a topic already and begins a new partition of it at the end (KIP-1327) passes
    over what was written before its members learned of it. No commit tells whether that was read.

    Args:
        rows: `group_id`, `topic`, `log_start_offset`, `first_committed`, `first_epoch`,
            `has_gaps`, `is_other_log`, `reason`.
        progress: `group_id`, `topic`, `first_epoch` of all partitions that were ever committed,
            those included whose offsets were removed since.
        lacking: Of `LACKING`: of these groups earlier commits may be missing.
    """
    topic = ["group_id", "topic"]
    begun = progress.group_by(topic).agg(pl.col("first_epoch").min().alias("begun"))
    rows = rows.join(begun, topic, "left", maintain_order="left")
    rows = _with_lacking(rows, lacking)
    is_gap = pl.col("has_gaps").fill_null(value=True)
    may_lack = pl.col("why").is_not_null() | is_gap | pl.col("is_other_log")
    below = (pl.col("first_committed") - pl.col("log_start_offset")).clip(0)
    rows = rows.with_columns(pl.when(~may_lack).then(below).alias("offsets_below_first"))
    is_later = pl.col("first_epoch") > pl.col("begun")
    last = pl.col("first_committed") - 1
    return rows.with_columns(
        pl.when(is_later & (pl.col("offsets_below_first") > 0))
        .then(words_expression(PASSED_OVER, first=pl.col("log_start_offset"), last=last))
        .otherwise("reason")
        .alias("reason")
    ).drop("begun", "why")


def with_lost_unread(rows: pl.DataFrame, lacking: pl.DataFrame) -> pl.DataFrame:
    """Add `lost_offsets`, records that were deleted and never read, and say where that is unsure.

    A committed offset below the log start says that a consumer would read there, not that nobody
    ever did: one that went back had been further. So records count as lost only from the highest
    commit for the same topic on, and only where no earlier commit can be missing.

    Args:
        rows: `group_id`, `committed_offset`, `log_start_offset`, `offsets_below_start`, `reason`;
            `highest_committed` for the same topic, null where none was; `has_gaps`, whether earlier
            commits of the partition are missing.
        lacking: Of `LACKING`.
    """
    below = pl.col("offsets_below_start")
    reached = pl.max_horizontal("committed_offset", "highest_committed")
    unread = (pl.col("log_start_offset") - reached).fill_null(below).clip(0)
    gap = pl.when(pl.col("has_gaps").fill_null(value=False)).then(pl.lit(A_GAP))
    rows = _with_lacking(rows, lacking).with_columns(
        pl.when(below.is_not_null()).then(pl.min_horizontal(unread, below)).alias("lost_offsets"),
        pl.coalesce("why", gap).alias("why"),
    )
    is_lost = pl.col("lost_offsets") > 0
    is_unsure = (is_lost & pl.col("why").is_not_null()).fill_null(value=False)
    return rows.with_columns(
        pl.when(~is_unsure).then("lost_offsets").alias("lost_offsets"),
        pl.when(is_unsure)
        .then(pl.format(NOT_KNOWN + "{}", "why"))
        .when((below > 0) & ~is_lost)
        .then(pl.format(READ_BEFORE, reached))
        .otherwise("reason")
        .alias("reason"),
    ).drop("why")


def _with_lacking(rows: pl.DataFrame, lacking: pl.DataFrame) -> pl.DataFrame:
    once = lacking.select(*LACKING).unique("group_id", keep="first", maintain_order=True)
    return rows.join(once, "group_id", "left", maintain_order="left")


def with_stable_lags(rows: pl.DataFrame, stable: pl.DataFrame) -> pl.DataFrame:
    """Add where each row's log ends for readers of committed records, and their lag.

    Kafka's tools count to the log's end whoever reads. A group with
    `isolation.level=read_committed` is given nothing behind the first record of an open
    transaction; which groups are, nothing in a dump says, so both numbers are told.

    Args:
        rows: `topic`, `partition`, `log_end_offset`, `lag`.
        stable: `STABLE`. It says nothing of a log that ends elsewhere: the end was then taken at
            another time, or from another copy.

    Returns:
        `last_stable_offset`, `lag_read_committed`: the lag without what lies behind that offset,
        below zero where the group has committed beyond it; null where that or the lag is not known.
    """
    told = stable.select(*_PLACE, pl.col("log_end_offset").alias("stable_end"), _STABLE)
    rows = rows.join(told, _PLACE, "left", maintain_order="left")
    is_same = pl.col("stable_end") == pl.col("log_end_offset")
    rows = rows.with_columns(pl.when(is_same).then(_STABLE).alias(_STABLE))
    behind = pl.col("log_end_offset") - pl.col(_STABLE)
    rows = rows.with_columns((pl.col("lag") - behind).alias("lag_read_committed"))
    return rows.drop("stable_end")


WHY_HELD_BACK: Final = pl.when((pl.col("lag") > 0) & (pl.col("lag_read_committed") <= 0)).then(
    pl.lit(HELD_BACK)
)
"""Why a group that reads committed records only has nothing to read, where that is so."""
