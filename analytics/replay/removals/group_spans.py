"""What kind of group a name was, from record to record, and what kept its offsets meanwhile.

A span reaches from the record that began it to the one that ended it. Brokers keep offsets of
topics that a group is subscribed to, and count the retention from what kind of group it is
(``ClassicGroup``, ``ConsumerGroup`` and ``StreamsGroup``, each ``offsetExpirationCondition`` and
``isSubscribedToTopic``). A rebalance under way leaves no record: a group that is not empty counts
as stable. Every record about a group but its offsets is a step (`_STEPS`): of which type of group
it is.

Takes decoded tables by name as frames of polars, cut at an instant, of whole groups of any number
of partitions: `key`, `partition`, `offset`, `timestamp`, `is_tombstone`, `value`. Gives
`GROUP_SPANS` and `PROTECTIONS`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import polars as pl

from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    GROUP,
    GROUP_KEY,
    KINDS,
    MEMBER,
    STREAMS,
    table_name,
)
from analytics.replay.log.spans import (
    SPAN,
    SPAN_TYPES,
    TIME,
    joined_spans,
    overlap,
    until_next,
    with_next,
)

SUBSCRIBED, UNPARSEABLE, OTHER_PROTOCOL, ACTIVE = (
    "subscribed",
    "unparseable_subscription",
    "other_protocol_type",
    "active",
)
"""What may keep offsets: of one topic the first, of all topics the others."""

_READ_BY_BROKERS: Final = 2
"""Fields of a subscription that brokers read: topics and user data."""

_NAMES: Final = {"coordinator_partition": pl.Int32(), "group_id": pl.String()}
GROUP_SPANS: Final = pl.Schema(
    {
        **_NAMES,
        **SPAN_TYPES,
        "family": pl.String(),
        "protocol_type": pl.String(),
        "member_count": pl.Int32(),
        "state_ms": pl.Int64(),
        "topics": pl.List(pl.String()),
        "generation": pl.Int32(),
        "skips_generation": pl.Boolean(),
    }
)
"""`family` is null where there is no group of its own; of classic groups `protocol_type` (null
where it has none), `member_count`, `state_ms` (null where not stored), `topics` (null where the
subscription cannot be parsed), `generation`, and `skips_generation`: whether a generation without a
record came before the next one: the group rebalanced, and its members did not get that far."""

PROTECTIONS: Final = pl.Schema({**_NAMES, "topic": pl.String(), "why": pl.String(), **SPAN_TYPES})
"""From where to where something may keep offsets of a group, of all topics where `topic` is null.
Spans of one group, topic and reason neither touch nor overlap."""
_STEPS: Final = pl.Schema(
    {
        "coordinator_partition": pl.Int32(),
        "group_id": pl.String(),
        "from_offset": pl.Int64(),
        "from_at": TIME,
        "family": pl.String(),
        "is_group": pl.Boolean(),
        "creates": pl.Boolean(),
        "is_tombstone": pl.Boolean(),
        "is_simple": pl.Boolean(),
    }
)
"""A row per record: its offset and time, the type of group it is of, whether it is the record of
the group itself, whether a value makes the group, whether it is the value of a classic group
without members and protocol type."""

_SIMPLE: Final = "simple"
_STRETCH: Final = (*GROUP_KEY, "stretch")


def group_spans(
    decoded: Mapping[str, pl.DataFrame], commits: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return `GROUP_SPANS`: what kind of group each name was.

    Args:
        decoded: Decoded tables, cut at an instant.
        commits: Of `commit_rows`; None where tombstones take no simple group over, before 4.0, or
            where it does not matter: such a group keeps and counts as a simple one does.
    """
    steps = _group_steps(decoded)
    # Any value that makes a group where there is none: compaction may have left that alone.
    told = steps.filter(
        (pl.col("family") != CLASSIC)
        & pl.col("creates")
        & (pl.col("is_group") | ~pl.col("is_tombstone"))
    ).with_columns(pl.when(~pl.col("is_tombstone")).then("family").alias("family"))
    parts = [_classic_steps(decoded["group_metadata"]), told]
    if commits is not None:
        # A tombstone of the group itself ends at once what it took over.
        parts.append(_group_conversions(steps, commits).filter(~pl.col("is_group")))
    columns = [each for each in GROUP_SPANS if each not in {"to_offset", "to_at"}]
    rows = pl.concat(
        [each.select(name for name in each.columns if name in columns) for each in parts],
        how="diagonal",
    ).sort(*GROUP_KEY, "from_offset")
    family = pl.col("family")
    goes_on = pl.all_horizontal(pl.col(each) == pl.col(each).shift(1) for each in GROUP_KEY)
    repeats = (family != CLASSIC) & (family == family.shift(1)) & goes_on
    follows = (family == CLASSIC) & (family.shift(-1) == CLASSIC) & goes_on.shift(-1)
    is_skipped = follows & (pl.col("generation").shift(-1) > pl.col("generation") + 1)
    changes = rows.with_columns(is_skipped.fill_null(value=False).alias("skips_generation")).filter(
        ~repeats.fill_null(value=False)
    )
    return with_next(changes, GROUP_KEY).select(GROUP_SPANS.names())


def protection_spans(
    decoded: Mapping[str, pl.DataFrame],
    groups: pl.DataFrame,
    reasons: Collection[str] = (SUBSCRIBED, UNPARSEABLE, OTHER_PROTOCOL, ACTIVE),
) -> pl.DataFrame:
    """Return `PROTECTIONS`.

    Args:
        decoded: Decoded tables, cut at an instant.
        groups: Their `group_spans`.
        reasons: Why something keeps offsets: what does for another reason is left out.
    """
    parts = [*_of_classic(groups), *_of_consumer_groups(decoded), *_of_streams_groups(decoded)]
    spans = pl.concat(
        [PROTECTIONS.to_frame(), *(each.select(PROTECTIONS.names()) for each in parts)]
    )
    heeded = spans.filter(pl.col("why").is_in(reasons))
    return joined_spans(heeded, (*GROUP_KEY, "topic", "why")).select(PROTECTIONS.names())


def _located(records: pl.DataFrame, group: str = "group_id") -> pl.DataFrame:
    """Add `GROUP_KEY`, `from_offset` and `from_at` to decoded records."""
    return records.with_columns(
        pl.col("partition").alias("coordinator_partition"),
        pl.col("key").struct.field(group).alias("group_id"),
        pl.col("offset").alias("from_offset"),
        pl.col("timestamp").cast(TIME).alias("from_at"),
    )


def _group_steps(decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return `_STEPS` of decoded tables, in the order of `GROUP_KEY` and `from_offset`."""
    parts = [_STEPS.to_frame()]
    for name, kind in KINDS.items():
        records = decoded[name]
        if not records.height:
            continue
        is_classic = kind.family == CLASSIC
        rows = _located(records, kind.group_field).with_columns(
            pl.lit(kind.family).alias("family"),
            pl.lit(kind.role == GROUP).alias("is_group"),
            pl.lit(kind.creates).alias("creates"),
            (_is_simple() if is_classic else pl.lit(value=False)).alias("is_simple"),
        )
        parts.append(rows.select(pl.col(each).cast(type_) for each, type_ in _STEPS.items()))
    return pl.concat(parts).sort(*GROUP_KEY, "from_offset")


def _group_conversions(steps: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """Return the tombstones that took a simple group over: it is of their type from there.

    Since 4.0 (``GroupMetadataManager``: get or create by a record of another type). A simple group
    is made by a commit where there is no group, or by a classic value without members and protocol
    type.

    Args:
        steps: Of `_group_steps`.
        commits: Of `commit_rows`.

    Returns:
        Those steps, at most one between two records that make or remove a group.
    """
    placed = _with_stretches(steps)
    candidates = placed.filter("may_take")
    if not candidates.height:
        return candidates.select(steps.columns)
    found = candidates.join(_simple_from(candidates, commits), on=list(_STRETCH), how="left")
    taken = (pl.col("met_label") == CLASSIC) | (pl.col("from_offset") > pl.col("made_at"))
    return (
        found.filter(taken)
        .sort("from_offset")
        .unique(list(_STRETCH), keep="first", maintain_order=True)
        .select(steps.columns)
    )


def _classic_steps(records: pl.DataFrame) -> pl.DataFrame:
    if not records.height:
        return GROUP_SPANS.to_frame()
    value, is_value = pl.col("value"), ~pl.col("is_tombstone")
    state = value.struct.field("current_state_timestamp")
    members = value.struct.field("members")
    protocol = value.struct.field("protocol_type")
    return _located(records, "group").select(
        *GROUP_KEY,
        "from_offset",
        "from_at",
        pl.when(is_value).then(pl.lit(CLASSIC)).alias("family"),
        pl.when(protocol != "").then(protocol).alias("protocol_type"),
        members.list.len().cast(pl.Int32).alias("member_count"),
        pl.when(state >= 0).then(state).alias("state_ms"),
        _classic_topics(value, members).alias("topics"),
        value.struct.field("generation").alias("generation"),
    )


def _classic_topics(value: pl.Expr, members: pl.Expr) -> pl.Expr:
    """Return what members of a group of consumers are subscribed to; null if one is unreadable.

    A broker reads to the user data, and takes every subscription for one of version 0
    (``ClassicGroup.computeSubscribedTopics``).
    """
    subscription = pl.element().struct.field("subscription_decoded")
    written = subscription.struct.field("fields_written").fill_null(_READ_BY_BROKERS)
    topics = subscription.struct.field("topics")
    read = members.list.eval(pl.when(written >= _READ_BY_BROKERS).then(topics))
    unread = read.list.eval(pl.element().is_null()).list.any()
    is_consumer = value.struct.field("protocol_type") == CONSUMER_PROTOCOL
    is_read = is_consumer & ~unread & value.struct.field("protocol").is_not_null()
    named = read.list.eval(pl.element().explode().drop_nulls())
    return pl.when(is_read).then(named.list.unique(maintain_order=True))


def _of_classic(groups: pl.DataFrame) -> list[pl.DataFrame]:
    filled = groups.filter((pl.col("family") == CLASSIC) & (pl.col("member_count") > 0))
    is_consumer = pl.col("protocol_type").eq_missing(pl.lit(CONSUMER_PROTOCOL))
    is_read = is_consumer & pl.col("topics").is_not_null()
    why = pl.when(~is_consumer).then(pl.lit(OTHER_PROTOCOL)).otherwise(pl.lit(UNPARSEABLE))
    nothing = pl.lit(None, pl.String).alias("topic")
    return [
        filled.with_columns(nothing, pl.lit(ACTIVE).alias("why")),
        filled.filter(~is_read).with_columns(nothing, why.alias("why")),
        _subscribed(filled.filter(is_read)),
    ]


def _of_consumer_groups(decoded: Mapping[str, pl.DataFrame]) -> list[pl.DataFrame]:
    value = pl.col("value").struct
    members = _member_spans(
        decoded,
        CONSUMER,
        value.field("subscribed_topic_names").alias("topics"),
        value.field("subscribed_topic_regex").alias("regex"),
    )
    if members is None:
        return []
    found = [_subscribed(members)]
    resolved = decoded["consumer_group_regular_expression"]
    if resolved.height:
        key = (*GROUP_KEY, "regex")
        spans = _located(resolved).select(
            *GROUP_KEY,
            pl.col("key").struct.field("regular_expression").alias("regex"),
            pl.col("value").struct.field("topics").alias("topics"),
            *("from_offset", "from_at", "is_tombstone"),
        )
        spans = until_next(spans, key).filter(~pl.col("is_tombstone")).drop("is_tombstone")
        matching = members.filter(pl.col("regex") != "").drop("topics")
        found.append(_subscribed(overlap(matching, spans, key)))
    return found


def _of_streams_groups(decoded: Mapping[str, pl.DataFrame]) -> list[pl.DataFrame]:
    members, topologies = _member_spans(decoded, STREAMS), decoded["streams_group_topology"]
    if members is None or not topologies.height:
        return []
    each = pl.element().struct
    repartition = each.field("repartition_source_topics").list.eval(
        pl.element().struct.field("name")
    )
    sources = pl.concat_list(each.field("source_topics"), repartition)
    spans = _located(topologies).select(
        *GROUP_KEY,
        *("from_offset", "from_at", "is_tombstone"),
        pl.col("value")
        .struct.field("subtopologies")
        .list.eval(sources)
        .list.eval(pl.element().explode())
        .alias("topics"),
    )
    spans = until_next(spans, GROUP_KEY).filter(~pl.col("is_tombstone")).drop("is_tombstone")
    filled = joined_spans(members.select(*GROUP_KEY, *SPAN), GROUP_KEY)
    return [_subscribed(overlap(filled, spans, GROUP_KEY))]


def _member_spans(
    decoded: Mapping[str, pl.DataFrame], family: str, *columns: pl.Expr
) -> pl.DataFrame | None:
    """Return from which record to which each member was as it was; None where no record tells."""
    records = decoded[table_name(family, MEMBER)]
    if not records.height:
        return None
    placed = _located(records).select(
        *GROUP_KEY,
        pl.col("key").struct.field("member_id").alias("member_id"),
        *("from_offset", "from_at", "is_tombstone"),
        *columns,
    )
    spans = until_next(placed, (*GROUP_KEY, "member_id")).filter(~pl.col("is_tombstone"))
    return spans.drop("is_tombstone", "member_id")


def _subscribed(spans: pl.DataFrame) -> pl.DataFrame:
    named = spans.select(*GROUP_KEY, pl.col("topics").alias("topic"), *SPAN).explode("topic")
    return named.filter(pl.col("topic").is_not_null()).with_columns(pl.lit(SUBSCRIBED).alias("why"))


def _is_simple() -> pl.Expr:
    value = pl.col("value")
    no_protocol = value.struct.field("protocol_type").fill_null("") == ""
    nobody = value.struct.field("members").list.len().fill_null(0) == 0
    return no_protocol & nobody & ~pl.col("is_tombstone")


def _with_stretches(steps: pl.DataFrame) -> pl.DataFrame:
    """Number the stretches between records that make or remove a group.

    Returns:
        The steps with `stretch`, `met_label` and `met_offset` of the record the stretch follows
        (null before the first), and `may_take`: it takes over what there is, if there is a simple
        group.
    """
    family, is_tombstone = pl.col("family"), pl.col("is_tombstone")
    births = pl.col("creates") & ~is_tombstone
    removals = pl.col("is_group") & is_tombstone
    label = pl.when(births).then(family).when(removals).then(pl.lit(_SIMPLE))
    marked = steps.with_columns(label.alias("label"))
    is_mark = pl.col("label").is_not_null()

    def met(what: pl.Expr) -> pl.Expr:
        last = pl.when(is_mark).then(what).forward_fill()
        return last.shift(1).over(list(GROUP_KEY))

    placed = marked.with_columns(
        met(pl.col("label")).alias("met_label"),
        met(pl.col("is_simple")).alias("met_simple"),
        met(pl.col("from_offset")).alias("met_offset"),
        is_mark.cum_sum().shift(1, fill_value=0).over(list(GROUP_KEY)).alias("stretch"),
    )
    # What follows a removal, or nothing at all, may be a group that commits made.
    was = pl.col("met_label")
    simple = was.is_null() | (was == _SIMPLE) | pl.col("met_simple")
    newer = is_tombstone & family.is_in([CONSUMER, STREAMS])
    return placed.with_columns((newer & simple.fill_null(value=False)).alias("may_take"))


def _simple_from(candidates: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """Return the first commit in each stretch without a group: `_STRETCH` and `made_at`."""
    without = candidates.filter(pl.col("met_label").is_null() | (pl.col("met_label") == _SIMPLE))
    bounds = without.group_by(*_STRETCH).agg(
        pl.col("from_offset").max().alias("until"),
        pl.col("met_offset").max().fill_null(-1).alias("since"),
    )
    made = pl.col("record_offset")
    return (
        commits.filter(~pl.col("is_tombstone"))
        .select(*GROUP_KEY, "record_offset")
        .join(bounds, on=list(GROUP_KEY))
        .filter((made > pl.col("since")) & (made < pl.col("until")))
        .group_by(*_STRETCH)
        .agg(made.min().alias("made_at"))
    )
