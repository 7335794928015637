"""The table `load_faults`: records for which a coordinator refuses to load their partition.

A coordinator that takes a partition over replays its log, and gives up at the first record that
contradicts those before it (``GroupMetadataManager.replay``) or that it cannot read
(``CoordinatorLoaderImpl``). Compaction can bring that about: it takes the records of a group's life
one by one, each when a later one has its key.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    GROUP_KEY,
    MEMBER,
    REMOVED_ASSIGNMENT_EPOCH,
    SHARE,
    STREAMS,
    TARGET,
)
from analytics.replay.history.takeovers import is_simple
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.record_position import IN_DUMP, POSITION
from analytics.replay.log.rules import ReplayRules
from schemas.load_faults import load_faults as known_faults

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

TOPICS = ("__consumer_offsets", "__share_group_state")
GONE = -1
"""Epoch of a member whose current assignment was removed (``LEAVE_GROUP_MEMBER_EPOCH``)."""
_LIFE = (*GROUP_KEY, "life")
_IS_TOMBSTONE = "is_tombstone"


def load_faults(steps: DataFrame, decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return the table `load_faults`.

    Args:
        steps: Of `steps_in_lives`.
        decoded: The decoded tables that they are of, cut at the same instant.
        rules: Of the release that loads them.
    """
    rows = _undecoded(decoded["undecoded"])
    if rules.group_records == "checked":
        rows = rows.unionByName(_misfits(steps, decoded["offset_commit"], rules))
    return as_table(rows, "load_faults")


def _undecoded(undecoded: DataFrame) -> DataFrame:
    """Return the records that no broker can read."""
    nothing = F.lit(None)
    refused = F.col("reason").isin(*sorted(known_faults().undecoded))
    return undecoded.where(
        F.col("topic").isin(*TOPICS) & F.col("offset").isNotNull() & refused
    ).select(
        "topic",
        nothing.cast("string").alias("group_id"),
        nothing.cast("smallint").alias("record_type"),
        F.col("reason").alias("fault"),
        F.lit(col=True).alias("stops_loading"),
        "detail",
        F.col("timestamp").alias("at"),
        F.col("partition").alias("coordinator_partition"),
        F.col("offset").alias("record_offset"),
        nothing.cast("int").alias("leader_epoch"),
        *IN_DUMP,
    )


def _misfits(steps: DataFrame, commits: DataFrame, rules: ReplayRules) -> DataFrame:
    """Return the records that do not fit what their group is when they come."""
    met = _with_commits_met(_with_group_met(steps), commits, rules)
    fault = _first_of(_faults(rules))
    known = _with_what_remains(met).where(~_is_skipped(rules))
    found = known.withColumn("found", fault).where("found is not null")
    tolerated = sorted(known_faults().tolerated)
    return found.select(
        F.lit(TOPICS[0]).alias("topic"),
        "group_id",
        "record_type",
        F.col("found.fault").alias("fault"),
        (~F.col("found.fault").isin(*tolerated)).alias("stops_loading"),
        F.col("found.detail").alias("detail"),
        F.col("timestamp").alias("at"),
        "coordinator_partition",
        F.col("offset").alias("record_offset"),
        *(F.col(f"position.{name}").alias(name) for name in POSITION),
    )


# --- what a record meets -------------------------------------------------------------------------


def _with_group_met(steps: DataFrame) -> DataFrame:
    """Say which group is there when a record comes.

    Returns:
        The steps with `met` (its type, null where there is none), `met_simple` (boolean), `own`
        (boolean: the record is about that group, or makes it) and `since` (bigint: offset of the
        record that removed the last one, null where none did).
    """
    family = F.col("family")
    is_classic_value = (family == CLASSIC) & ~F.col(_IS_TOMBSTONE)
    nobody = F.lit(None).cast("string")
    # The classic tombstone removes a group that commits made, too, which is no life of a group.
    removes = F.col("ends") | ((family == CLASSIC) & F.col(_IS_TOMBSTONE))
    mark = F.when(
        F.col("starts") | is_classic_value,
        F.struct(family.alias("family"), is_simple().alias("simple"), "offset"),
    ).when(removes, F.struct(nobody.alias("family"), F.lit(col=False).alias("simple"), "offset"))
    before = _earlier(Window.partitionBy(*GROUP_KEY).orderBy("offset"))
    met = F.col("mark_before.family")
    return (
        steps.withColumn("mark", mark)
        .withColumn("mark_before", F.last("mark", ignorenulls=True).over(before))
        .withColumn("met", met)
        .withColumn("met_simple", F.coalesce("mark_before.simple", F.lit(col=False)))
        .withColumn("own", F.col("starts") | F.coalesce(met == family, F.lit(col=False)))
        .withColumn("since", F.when(met.isNull(), F.col("mark_before.offset")))
        .drop("mark", "mark_before")
    )


def _with_commits_met(met: DataFrame, commits: DataFrame, rules: ReplayRules) -> DataFrame:
    """Say where a record meets a group that commits made, and that does not give way to it.

    Returns:
        The steps with `met_commits` (boolean).
    """
    firm = [SHARE, STREAMS] if rules.streams_over_simple == "refused" else [SHARE]
    lonely = met.where(F.col("met").isNull() & F.col("family").isin(*firm))
    places = lonely.select(*GROUP_KEY, "offset", F.coalesce("since", F.lit(-1)).alias("since"))
    made = commits.where(~F.col(_IS_TOMBSTONE)).select(
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group").alias("group_id"),
        F.col("offset").alias("committed_at"),
    )
    at = F.col("committed_at")
    found = (
        made.join(F.broadcast(places), list(GROUP_KEY))
        .where((at > F.col("since")) & (at < F.col("offset")))
        .select(*GROUP_KEY, "offset", F.lit(col=True).alias("met_commits"))
        .distinct()
    )
    marked = met.join(F.broadcast(found), [*GROUP_KEY, "offset"], "left")
    return marked.fillna(value=False, subset=["met_commits"])


def _with_what_remains(met: DataFrame) -> DataFrame:
    """Say what the record's group and member have when it comes.

    Returns:
        The steps with `there` (boolean: the member is), `member_epoch`, `has_target` (boolean),
        `members` and `targets` (how many there are), `assigned_epoch` (null before the first).
    """
    role, gone, value = F.col("role"), F.col(_IS_TOMBSTONE), ~F.col(_IS_TOMBSTONE)
    member = _earlier(Window.partitionBy(*_LIFE, "member_id").orderBy("offset"))
    group = _earlier(Window.partitionBy(*_LIFE).orderBy("offset"))
    joins = role.isin(MEMBER, CURRENT) & value
    leaves = (role == MEMBER) & gone
    there, had = F.col("there"), F.col("has_target")
    # A member begins with epoch 0 each time that it comes.
    epoch = (
        F.when((role == CURRENT) & value, F.col("epoch"))
        .when((role == CURRENT) & there, GONE)
        .when(leaves | (joins & ~there), 0)
    )
    came = F.when(joins & ~there, 1).when(leaves & there, -1).otherwise(0)
    is_target = role == TARGET
    gained = F.when(is_target & value & ~had, 1).when(is_target & gone & had, -1).otherwise(0)
    assigned = F.when(
        role == ASSIGNMENT_EPOCH, F.when(gone, REMOVED_ASSIGNMENT_EPOCH).otherwise(F.col("epoch"))
    )
    nobody, comes, goes = F.lit(0).cast("bigint"), F.lit(col=True), F.lit(col=False)
    return (
        met.withColumn("there", _lastly(F.when(joins, comes).when(leaves, goes), member))
        .withColumn("has_target", _lastly(F.when(is_target, value), member))
        .withColumn("member_epoch", F.last(epoch, ignorenulls=True).over(member))
        .withColumn("members", F.coalesce(F.sum(came).over(group), nobody))
        .withColumn("targets", F.coalesce(F.sum(gained).over(group), nobody))
        .withColumn("assigned_epoch", F.last(assigned, ignorenulls=True).over(group))
    )


# --- what does not fit ---------------------------------------------------------------------------


def _faults(rules: ReplayRules) -> list[tuple[str, Column, Column]]:
    """Return the faults in the order in which a broker finds them: word, condition, detail."""
    family, role, own = F.col("family"), F.col("role"), F.col("own")
    gone = F.col(_IS_TOMBSTONE)
    replaced = [CONSUMER, STREAMS] if rules.streams_over_simple == "replaced" else [CONSUMER]
    gives_way = F.col("met_simple") & family.isin(*replaced)
    meets_other = F.col("met").isNotNull() & (F.col("met") != family)
    is_other = F.col("met_commits") | (meets_other & ~gives_way)
    is_modern = family != CLASSIC
    group_goes = own & (role == GROUP) & gone & is_modern
    member_goes = own & (role == MEMBER) & gone & F.col("there")
    is_of = F.concat(F.lit("the group is a "), F.coalesce("met", F.lit("simple")), F.lit(" group"))
    member = F.concat(F.lit("member "), F.col("member_id"))
    takes_over = F.col("takes_over").isNotNull() & (role == GROUP)
    has_epoch = ~F.equal_null(F.col("assigned_epoch"), F.lit(REMOVED_ASSIGNMENT_EPOCH))
    targets = F.concat(F.col("targets").cast("string"), F.lit(" target assignments remain"))
    return [
        ("other_type", is_modern & is_other, is_of),
        *_unmatched(rules, member),
        (
            "assignment_epoch_remains",
            takes_over & gone,
            F.lit("it takes a simple group over, which has no assignment epoch to remove"),
        ),
        (
            "members_remain",
            group_goes & (F.col("members") > 0),
            F.concat(F.col("members").cast("string"), F.lit(" members remain")),
        ),
        (
            "targets_remain",
            ((group_goes & (family != STREAMS)) | (own & (role == ASSIGNMENT_EPOCH) & gone))
            & (F.col("targets") > 0),
            targets,
        ),
        (
            "assignment_epoch_remains",
            group_goes & has_epoch,
            F.lit("the assignment epoch was not removed before"),
        ),
        (
            "member_not_left",
            member_goes & (F.col("member_epoch") != GONE),
            F.concat(member, F.lit(" still has a current assignment or never had one")),
        ),
        (
            "member_target_remains",
            member_goes & F.col("has_target"),
            F.concat(member, F.lit(" still has a target assignment")),
        ),
        ("replaces_other_type", (family == CLASSIC) & ~gone & meets_other, is_of),
    ]


def _unmatched(rules: ReplayRules, member: Column) -> list[tuple[str, Column, Column]]:
    if rules.unmatched_share_records != "refused":
        return []
    role, is_share, gone = F.col("role"), F.col("family") == SHARE, F.col(_IS_TOMBSTONE)
    makes_group = role.isin(GROUP, MEMBER) & ~gone
    no_group = is_share & F.col("met").isNull() & ~makes_group
    needs_member = (role == CURRENT) | ((role == MEMBER) & gone)
    no_member = is_share & F.col("own") & needs_member & ~F.col("there")
    return [
        ("no_group", no_group, F.lit("there is no group")),
        ("no_member", no_member, F.concat(member, F.lit(" is not there"))),
    ]


def _is_skipped(rules: ReplayRules) -> Column:
    """Whether a broker of the release does not know the record's type."""
    streams = F.lit(rules.streams_over_simple == "skipped") & (F.col("family") == STREAMS)
    # Of what makes no group there is one type, which only 4.0 knows.
    return streams | (F.lit(rules.unmatched_share_records != "refused") & ~F.col("creates"))


def _first_of(faults: list[tuple[str, Column, Column]]) -> Column:
    def or_else(before: Column, each: tuple[str, Column, Column]) -> Column:
        fault, condition, detail = each
        said = F.struct(F.lit(fault).alias("fault"), detail.alias("detail"))
        return F.coalesce(before, F.when(condition, said))

    nothing = F.lit(None).cast("struct<fault:string,detail:string>")
    return reduce(or_else, faults, nothing)


def _lastly(said: Column, window: WindowSpec) -> Column:
    return F.coalesce(F.last(said, ignorenulls=True).over(window), F.lit(col=False))


def _earlier(window: WindowSpec) -> WindowSpec:
    return window.rowsBetween(Window.unboundedPreceding, -1)
