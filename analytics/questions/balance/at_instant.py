"""Groups at an instant, one row each, with all that judging their balance needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import polars as pl

from analytics.questions.balance.case import COUNT_SOURCES
from analytics.replay.groups.coordinator_log import in_name_order
from analytics.replay.log.spans import TIME
from analytics.replay.metadata_log import metadata_log

# How many partitions topics have, and how that is known.

# How many partitions topics had, from when to when.

TOLD_BY = ("topic_record", "remove_topic_record", "partition_record")
"""Tables of the metadata log that are looked at with their values, beside `AROUND`."""

SIZES = pl.Schema(
    {
        "topic": pl.String(),
        "topic_id": pl.String(),
        "partitions": pl.Int32(),
        "since": TIME,
        "until": TIME,
        "counted_by": pl.String(),
    }
)


def topic_sizes(decoded: Mapping[str, pl.DataFrame], counts: pl.DataFrame) -> pl.DataFrame:
    """Return the partition counts of topics over time, as the metadata log tells them.

    Args:
        decoded: `TOLD_BY` and `AROUND` of `metadata_log`, cut at the instant.
        counts: `partition_counts`: of one time, where no log of the metadata tells more.

    Returns:
        `SIZES`; `since` is null before anything tells, `until` where no end is known: one row for
        each time that partitions were added.
    """
    timeless = counts.filter(pl.col("counted_by") != METADATA_LOG)
    return pl.concat(
        [_logged_sizes(decoded), timeless.match_to_schema(SIZES, missing_columns="insert")]
    )


def _logged_sizes(decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    value = pl.col("value").struct
    log = metadata_log(decoded)
    topics, removals, partitions = (log.visible(name) for name in TOLD_BY)
    names = topics.select(value.field("topic_id"), value.field("name").alias("topic"))
    ends = removals.select(value.field("topic_id"), pl.col("since").alias("removed"))
    added = (
        partitions.select(value.field("topic_id"), value.field("partition_id"), "at", "since")
        .sort("at")
        .group_by("topic_id", "partition_id")
        .first()
    )
    # Partitions that were created together have times that differ by the batch, if at all.
    return (
        added.group_by("topic_id", "since")
        .agg(pl.len().alias("more"))
        .sort("topic_id", "since", nulls_last=False)
        .with_columns(
            pl.col("more").cum_sum().over("topic_id").cast(pl.Int32).alias("partitions"),
            pl.col("since").shift(-1).over("topic_id").alias("next"),
        )
        .join(names, on="topic_id")
        .join(ends, on="topic_id", how="left")
        .select(
            *("topic", "topic_id", "partitions", "since"),
            pl.coalesce("next", "removed").alias("until"),
            pl.lit(METADATA_LOG).alias("counted_by"),
        )
    )


METADATA_LOG, _, SIDE_FILE, PARTITION_METADATA, SEEN, _ = COUNT_SOURCES
COUNTS = pl.Schema(
    {"topic": pl.String, "topic_id": pl.String, "partitions": pl.Int32, "counted_by": pl.String}
)


def partition_counts(
    topics: pl.DataFrame, in_records: pl.DataFrame, highest: pl.DataFrame
) -> pl.DataFrame:
    """Return the partition count of every living topic that something is known of.

    Args:
        topics: The table `topics`.
        in_records: Counts that records of groups hold: `topic`, `partitions` (`counts_in_records`).
        highest: Of `highest_seen`: a lower bound.

    Returns:
        `COUNTS`: one row a topic; `topic_id` is null where it is not known.
    """
    living = topics.filter(pl.col("deleted_at").is_null() & pl.col("topic").is_not_null())
    listed = living.filter(pl.col("partitions").is_not_null()).select(
        "topic", "topic_id", "partitions", pl.col("source").alias("counted_by")
    )
    other = pl.concat(
        [
            in_records.select(
                "topic", "partitions", pl.lit(PARTITION_METADATA).alias("counted_by")
            ),
            highest.select("topic", "partitions", pl.lit(SEEN).alias("counted_by")),
        ]
    )
    if has_metadata_log(topics):
        # Where the log of the metadata is there, what it does not list does not exist.
        other = other.clear()
    ids = living.group_by("topic").agg(pl.col("topic_id").max())
    rows = pl.concat([listed, other.join(ids, on="topic", how="left").select(listed.columns)])
    ranks = {word: rank for rank, word in enumerate(COUNT_SOURCES)}
    rank = pl.col("counted_by").replace_strict(ranks, default=-1, return_dtype=pl.Int32)
    # Of equally good sources the one that knows of more partitions: topics only grow.
    return (
        rows.with_columns(rank.alias("rank"))
        .sort("topic", "rank", -pl.col("partitions"), "topic_id")
        .group_by("topic", maintain_order=True)
        .first()
        .select(COUNTS.names())
        .cast(COUNTS)
    )


def has_metadata_log(topics: pl.DataFrame) -> bool:
    """Return whether the table `topics` was made of the metadata log: then no topic lacks."""
    return METADATA_LOG in topics["source"]


def highest_seen(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the least number of partitions of the topics that turn up: `topic`, `partitions`.

    Args:
        parts: `topic` (a name, or an id where that is all there is) and `partition`.
    """
    empty = pl.DataFrame(schema={"topic": pl.String, "partitions": pl.Int32})
    found = [
        each.filter(pl.col("topic").is_not_null())
        .group_by("topic")
        .agg((pl.col("partition").max() + 1).cast(pl.Int32).alias("partitions"))
        for each in parts
    ]
    return pl.concat([empty, *found]).group_by("topic").agg(pl.col("partitions").max())


def counts_in_records(records: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the counts in partition metadata records of groups (types 4 and 9, up to 4.0).

    Args:
        records: `topics` of their values: lists of structs with `topic_name`, `num_partitions`.

    Returns:
        `topic`, `partitions`: the highest count of each topic.
    """
    empty = pl.DataFrame(schema={"topic": pl.String, "partitions": pl.Int32})
    told = pl.col("topics").struct
    found = [
        each.explode("topics")
        .drop_nulls("topics")
        .select(
            told.field("topic_name").alias("topic"),
            told.field("num_partitions").alias("partitions"),
        )
        for each in records
    ]
    return pl.concat([empty, *found]).group_by("topic").agg(pl.col("partitions").max())


# What history adds to groups at an instant: since when, what moved, what was done meanwhile.

_PARTITION = ("group_id", "topic", "partition")
_BOUNDS = ("from_timestamp", "to_timestamp")
_EVER_BEFORE, _EVER_AFTER = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def with_epoch(cases: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Add when the present epoch began, and what it moved.

    Args:
        cases: `cases_at`.
        epochs: The table `group_epochs` at the same instant.

    Returns:
        The cases with `from_offset`, `from_timestamp` and `moved`; null where history is silent.
    """
    last = (
        epochs.sort("from_offset")
        .group_by("group_id")
        .last()
        .select(
            *("group_id", "epoch", "from_offset", "from_timestamp"),
            pl.col("partitions_moved").alias("moved"),
        )
    )
    return cases.drop("from_offset", "from_timestamp").join(
        last, on=["group_id", "epoch"], how="left"
    )


def with_progress(
    cases: pl.DataFrame, commits: pl.DataFrame, compacted_until: Mapping[int, int]
) -> pl.DataFrame:
    """Add how far commits advanced each partition in the time that a case stands for.

    Args:
        cases: With `from_timestamp` and `to_timestamp`; a null is no bound. And with `from_offset`.
        commits: Rows of `offset_history` with an advance above 0: `group_id`, `topic`, `partition`,
            `advance`, `effective_timestamp`, `coordinator_partition`. Steps back do not count.
        compacted_until: By partition of `__consumer_offsets`, the offset before which compaction
            took records.

    Returns:
        The cases with `progress`: list of `topic`, `partition`, `advance`; null without commits,
        and where compaction may have taken some of that time.
    """
    timed = commits.drop_nulls("effective_timestamp").sort(*_PARTITION, "effective_timestamp")
    so_far = timed.select(
        *_PARTITION,
        pl.col("effective_timestamp").alias("at"),
        pl.col("advance").cum_sum().over(_PARTITION).alias("done"),
    ).sort("at")
    at_any_time = commits.group_by(_PARTITION).agg(pl.col("advance").sum().alias("in_all"))
    spans = cases.select(SPAN, "group_id", *_BOUNDS).join(at_any_time, on="group_id")
    for bound in _BOUNDS:
        spans = _with_done_before(spans, so_far, bound)
    begun, ended = (pl.col(f"done_before_{bound}") for bound in _BOUNDS)
    advance = (
        pl.when(pl.all_horizontal(pl.col(_BOUNDS).is_null()))
        .then("in_all")
        .otherwise(ended - begun)
    )
    advanced = (
        spans.with_columns(advance.alias("advance"))
        .filter(pl.col("advance") > 0)
        .sort("topic", "partition")
        .group_by(SPAN)
        .agg(pl.struct("topic", "partition", "advance").alias("progress"))
    )
    homes = commits.group_by("group_id").agg(pl.col("coordinator_partition").first())
    shown = pl.col("coordinator_partition").replace_strict(
        pl.Series(list(compacted_until), dtype=pl.Int32),
        pl.Series(list(compacted_until.values()), dtype=pl.Int64),
        default=None,
        return_dtype=pl.Int64,
    )
    is_whole = (pl.col("from_offset").fill_null(-1) >= shown).fill_null(value=True)
    whole = cases.select(SPAN, "group_id", "from_offset").join(homes, on="group_id", how="left")
    return cases.join(
        advanced.join(whole.filter(is_whole).select(SPAN), on=SPAN, how="semi"), on=SPAN, how="left"
    )


def _with_done_before(spans: pl.DataFrame, so_far: pl.DataFrame, bound: str) -> pl.DataFrame:
    """Add how far commits had advanced a partition before a bound; all of them before none."""
    nowhere = _EVER_BEFORE if bound == _BOUNDS[0] else _EVER_AFTER
    return (
        spans.with_columns(pl.col(bound).fill_null(nowhere).alias("at"))
        .sort("at")
        .join_asof(
            so_far,
            on="at",
            by=list(_PARTITION),
            allow_exact_matches=False,
            check_sortedness=False,
        )
        .with_columns(pl.col("done").fill_null(0).alias(f"done_before_{bound}"))
        .drop("at", "done")
    )


SPAN = "span"
"""Numbers what is looked at: a group in a stretch of time."""

MEMBER_FIELDS = (
    "member_id",
    "group_instance_id",
    "rack_id",
    "member_epoch",
    "state",
    "unread",
    "wants",
    "has",
)
TOPIC_FIELDS = ("topic", "topic_id", "partitions", "counted_by", "assignable")
_NOT_TOLD = pl.lit(None, pl.List(pl.Int32)).alias("assignable")


def cases_at(
    state: Mapping[str, pl.DataFrame],
    counts: pl.DataFrame,
    expressions: pl.DataFrame,
    parts: pl.DataFrame,
) -> pl.DataFrame:
    """Return the groups that have members at the instant of the state tables.

    Args:
        state: Tables `groups`, `members`, `assignments`, `topics`, `share_partitions`.
        counts: `partition_counts`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.

    Returns:
        What `case_rows.case_of` reads: one row a group.
    """
    time = pl.lit(None, pl.Datetime("us", "UTC"))
    groups = (
        state["groups"]
        .filter(pl.col("member_count") > 0)
        .select(
            *("group_id", "group_type", "epoch", "assignment_epoch", "protocol_type", "protocol"),
            pl.col("missing").alias("unread"),
            pl.lit(None, pl.Int64).alias("from_offset"),
            time.alias("from_timestamp"),
            time.alias("to_timestamp"),
        )
        .with_row_index(SPAN)
    )
    spans = groups.select("group_id", SPAN)
    members = with_wants(state["members"], expressions, parts).join(spans, on="group_id")
    wants = members.sort("member_id").with_row_index("member")
    has = (
        owned(state["assignments"], state["topics"])
        .join(spans, on="group_id")
        .join(wants.select(SPAN, "member_id", "member"), on=[SPAN, "member_id"], how="left")
        .sort("topic")
    )
    found = needed_topics(wants, has).join(spans, on=SPAN).join(counts, on="topic")
    sources = (
        groups.join(parts, on="group_id")
        .select(SPAN, "subtopology_id", "by_regex", pl.col("sources").alias("topic"))
        .explode("topic")
        .drop_nulls("topic")
    )
    tasks = tasks_of(sources.join(counts, on="topic", how="left"))
    known = pl.concat([with_assignable(found, state["share_partitions"]), tasks])
    return assembled(groups, wants, has, known, state["topics"])


def assembled(
    groups: pl.DataFrame,
    subscriptions: pl.DataFrame,
    has: pl.DataFrame,
    needed: pl.DataFrame,
    topics: pl.DataFrame,
) -> pl.DataFrame:
    """Put groups together with their members, what these have, and the topics.

    Args:
        groups: One row a span.
        subscriptions: Members, in order of their ids: `SPAN`, `member` (unique within a span)
            and `MEMBER_FIELDS` but `has`.
        has: What they have, in order of topics: `SPAN`, `member`, `topic`, `partitions`.
        needed: `SPAN` and `TOPIC_FIELDS`: what is known of the topics a group needs.
        topics: The table `topics`.

    Returns:
        The columns of `groups`, `members`, `topics` (lists of structs) and `is_whole` (boolean: a
        topic that is not listed does not exist).
    """
    held = has.group_by(SPAN, "member", maintain_order=True).agg(
        pl.struct("topic", "partitions").alias("has")
    )
    members = (
        subscriptions.join(held, on=[SPAN, "member"], how="left", maintain_order="left")
        .group_by(SPAN, maintain_order=True)
        .agg(pl.struct(MEMBER_FIELDS).alias("members"))
    )
    about = needed.sort("topic").group_by(SPAN).agg(pl.struct(TOPIC_FIELDS).alias("topics"))
    return (
        groups.join(members, on=SPAN)
        .join(about, on=SPAN, how="left")
        .with_columns(pl.lit(has_metadata_log(topics)).alias("is_whole"))
    )


def with_wants(
    members: pl.DataFrame, expressions: pl.DataFrame, parts: pl.DataFrame
) -> pl.DataFrame:
    """Add `wants`: sorted names of all topics that members want, null where it cannot be read.

    Members of streams groups want all subtopologies.

    Args:
        members: `group_id`, `group_type`, `subscribed_topics`, `subscribed_regex`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.
    """
    tasks = parts.group_by("group_id").agg(pl.col("subtopology_id").unique().alias("tasks"))
    known = members.join(expressions, on=["group_id", "subscribed_regex"], how="left").join(
        tasks, on="group_id", how="left"
    )
    is_known = pl.col("subscribed_regex").is_null() | pl.col("resolved").is_not_null()
    told = is_known & pl.col("subscribed_topics").is_not_null()
    names = pl.when(told).then(
        pl.concat_list("subscribed_topics", pl.col("resolved").fill_null([])).list.unique()
    )
    wants = pl.when(pl.col("group_type") == "streams").then("tasks").otherwise(names)
    return known.with_columns(in_name_order(wants).alias("wants")).drop("resolved", "tasks")


def owned(assignments: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Return what members have now: `group_id`, `member_id`, `topic`, `partitions` (list).

    `topic` is a name only where that topic lives; a subtopology for tasks; else an id.
    """
    gone = topics.filter(pl.col("deleted_at").is_not_null())["topic_id"].drop_nulls().unique()
    is_gone = pl.col("topic_id").is_in(gone.implode()).fill_null(value=False)
    name = pl.when(~is_gone).then("topic")
    return (
        assignments.filter(
            pl.col("kind") == "current", pl.col("role").fill_null("active") == "active"
        )
        .with_columns(pl.coalesce("subtopology_id", name, "topic_id").alias("topic"))
        .group_by("group_id", "member_id", "topic")
        .agg(pl.col("partition").drop_nulls().unique().sort().alias("partitions"))
    )


def needed_topics(subscriptions: pl.DataFrame, has: pl.DataFrame) -> pl.DataFrame:
    """Return the topics that members want or have: `SPAN`, `topic`."""
    named = subscriptions.select(SPAN, pl.col("wants").alias("topic")).explode("topic")
    return pl.concat([named, has.select(SPAN, "topic")]).drop_nulls("topic").unique()


def tasks_of(sources: pl.DataFrame) -> pl.DataFrame:
    """Return subtopologies as topics: as many tasks as the largest source has partitions.

    Args:
        sources: `SPAN`, `subtopology_id`, `by_regex`, and of each source topic `partitions` and
            `counted_by`, null where not known.

    Returns:
        `SPAN` and `TOPIC_FIELDS`; `partitions` null where a source's are.
    """
    is_known = ~pl.col("by_regex").any() & (pl.col("partitions").count() == pl.len())
    return (
        sources.sort("partitions", nulls_last=False)
        .group_by(SPAN, pl.col("subtopology_id").alias("topic"))
        .agg(
            pl.lit(None, pl.String).alias("topic_id"),
            pl.when(is_known).then(pl.col("partitions").max()).alias("partitions"),
            pl.col("counted_by")
            .filter(pl.col("partitions").is_not_null())
            .last()
            .fill_null("unknown"),
            _NOT_TOLD,
        )
        .select(SPAN, *TOPIC_FIELDS)
    )


def with_assignable(topics: pl.DataFrame, share_partitions: pl.DataFrame) -> pl.DataFrame:
    """Add `assignable` for share groups: the partitions that are initialized for them.

    Args:
        topics: `SPAN` and `TOPIC_FIELDS` but that.
        share_partitions: The table. A group with nothing in it is not told what it may be given.
    """
    is_ready = pl.col("phase") == "initialized"
    ready = (
        share_partitions.filter(pl.col("phase").is_in(["initialized", "initializing"]))
        .group_by("group_id", "topic")
        .agg(pl.col("partition").filter(is_ready).unique().sort().alias("assignable"))
    )
    return topics.join(ready, on=["group_id", "topic"], how="left").select(SPAN, *TOPIC_FIELDS)
