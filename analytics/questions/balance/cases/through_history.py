"""Groups at every epoch of theirs, cut where their topics changed meanwhile.

Members and subscriptions are those at the end of an epoch. What is judged is what was decided: the
assignment of a classic group, the target assignment of the others, as their members are still on
the way to it when an epoch begins.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.questions.balance.cases.at_epochs import (
    OF_LIFE,
    assigned_at,
    in_order_of_ids,
    members_at,
    numbered,
)
from analytics.questions.balance.cases.at_instant import (
    SPAN,
    assembled,
    needed_topics,
    tasks_of,
    with_assignable,
    with_wants,
)
from analytics.questions.balance.cases.stretches import sizes_in, stretches
from analytics.replay.history.neighbours import EPOCH, LIFE

_WISH = "wish"


def cases_of_history(
    epochs: pl.DataFrame,
    held: pl.DataFrame,
    sizes: pl.DataFrame,
    state: Mapping[str, pl.DataFrame],
    expressions: pl.DataFrame,
    parts: pl.DataFrame,
) -> pl.DataFrame:
    """Return every epoch in which a group had members.

    Args:
        epochs: The table `group_epochs`.
        held: What members held: `coordinator_partition`, `group_id`, `life`, `LIFE` (numbers these
            three), `member` (numbers ids), `member_id`, `kind`, `role`, `subtopology_id`, `topic`,
            `topic_id`, `partition`, `group_instance_id`, and at the ends of which epochs:
            `first_epoch_no`, `last_epoch_no` (null: still).
        sizes: `topic_sizes`.
        state: Tables `topics` and `share_partitions`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.

    Returns:
        What `case_rows.case_of` reads: one row a stretch.
    """
    at, held = numbered(epochs, held), in_order_of_ids(held)
    wants = _members_with_topics(members_at(held, at), at, expressions, parts)
    spans = stretches(at.drop(OF_LIFE), wants.unique([EPOCH, _WISH]), sizes)
    times = spans.select(EPOCH, SPAN, "group_id", "from_timestamp")
    span_wants = wants.join(times.select(EPOCH, SPAN), on=EPOCH, maintain_order="left")
    assigned = assigned_at(held, at, _removals(sizes))
    has = _held(assigned, times)
    needed = needed_topics(span_wants.unique([SPAN, _WISH]), has).join(times, on=SPAN)
    sources = (
        times.join(parts, on="group_id")
        .select(
            *(SPAN, "from_timestamp", "subtopology_id", "by_regex"),
            pl.col("sources").alias("topic"),
        )
        .explode("topic")
        .drop_nulls("topic")
    )
    known = pl.concat(
        [
            with_assignable(sizes_in(needed, sizes), state["share_partitions"]),
            tasks_of(_with_sizes(sources, sizes)),
        ]
    )
    found = assembled(spans, span_wants, has, known, state["topics"])
    owned_before = _owned_before(times, assigned)
    return found.drop(EPOCH).join(owned_before, on=SPAN, how="left")


def _members_with_topics(
    members: pl.DataFrame, epochs: pl.DataFrame, expressions: pl.DataFrame, parts: pl.DataFrame
) -> pl.DataFrame:
    """Return members as `assembled` takes them; `_WISH` numbers what those of a group want."""
    words = pl.col("words").str.splitn(" ", 2).struct
    names, regex = words.field("field_0"), words.field("field_1")
    nothing = pl.lit(None, pl.String)
    told = members.join(
        epochs.select(
            *(EPOCH, LIFE, "group_id", "group_type"),
            pl.col("assignment_epoch").alias("member_epoch"),
        ),
        on=EPOCH,
        maintain_order="left",
    )
    wishes = (
        told.select(LIFE, "words", "group_id", "group_type")
        .unique([LIFE, "words"])
        .with_row_index(_WISH)
        .with_columns(
            names.str.split(",")
            .list.eval(pl.element().filter(pl.element() != ""))
            .alias("subscribed_topics"),
            pl.when(regex != "").then(regex).alias("subscribed_regex"),
        )
    )
    wanted = with_wants(wishes, expressions, parts).select(LIFE, "words", _WISH, "wants")
    return told.join(
        wanted, on=[LIFE, "words"], nulls_equal=True, maintain_order="left"
    ).with_columns(nothing.alias(name) for name in ("rack_id", "state", "unread"))


def _removals(sizes: pl.DataFrame) -> pl.DataFrame:
    """Return when topics were removed: `topic_id`, `removed`."""
    return (
        sizes.drop_nulls("topic_id")
        .sort("partitions")
        .group_by("topic_id")
        .agg(pl.col("until").last().alias("removed"))
    )


def _held(assigned: pl.DataFrame, times: pl.DataFrame) -> pl.DataFrame:
    """Return what members had in each stretch; topics that were gone by then go by their id."""
    is_gone = (pl.col("removed") <= pl.col("from_timestamp")).fill_null(value=False)
    key = (SPAN, "member", "topic")
    held = (
        assigned.join(times.select(EPOCH, SPAN, "from_timestamp"), on=EPOCH)
        .select(
            *(SPAN, "member"),
            pl.when(is_gone).then("gone").otherwise("topic").alias("topic"),
            "partition",
        )
        .sort(*key, "partition")
    )
    return (
        _distinct(held)
        .group_by(key, maintain_order=True)
        .agg(pl.col("partition").alias("partitions"))
        .with_columns(pl.col("topic").cast(pl.String))
    )


def _owned_before(times: pl.DataFrame, assigned: pl.DataFrame) -> pl.DataFrame:
    """Return what had an owner in the epoch before: `SPAN`, `owned_before` (null without one)."""
    held = assigned.select(pl.col(EPOCH) + 1, "topic", "partition")
    there = times.select(EPOCH)
    owned = _distinct(held.join(there, on=EPOCH, how="semi").sort(held.columns))
    listed = (
        owned.with_columns(pl.col("topic").cast(pl.String))
        .group_by(EPOCH)
        .agg(pl.struct("topic", "partition").alias("owned_before"))
    )
    return times.join(listed, on=EPOCH, how="left").select(SPAN, "owned_before")


def _distinct(rows: pl.DataFrame) -> pl.DataFrame:
    """Return each of sorted rows once."""
    every = pl.all()
    return rows.filter(pl.any_horizontal(every.ne_missing(every.shift(1))))


def _with_sizes(sources: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return sources with the counts of their time, null where there were none."""
    key = [SPAN, "subtopology_id", "topic"]
    found = sizes_in(sources, sizes).select(*key, "partitions", "counted_by")
    return sources.join(found, on=key, how="left")
