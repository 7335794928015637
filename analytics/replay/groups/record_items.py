"""What records about groups hold, as items: who is there, subscribes to what, has or shall have it.

A thing that a record holds is a row here, and lists are made of these rows at the end: to take
nested lists apart and to put them together is many times faster than to change them in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.groups.columns import ASSIGNOR, PENDING, PRESENCE, SUBSCRIPTION
from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    MEMBER,
    MEMBER_ROLES,
    STREAMS,
    TARGET,
    Kind,
)
from analytics.replay.log.meanings import text

if TYPE_CHECKING:
    from collections.abc import Iterable

ROW: Final = "row"
"""Tells in frames of this room which record something was said by."""
NO_PARTITION: Final = -1
ROLES: Final = ("active", "standby", "warmup")
ABOUT: Final = pl.Struct(
    dict.fromkeys(("group_instance_id", "client_id", "client_host"), pl.String())
)
ITEM: Final = pl.Struct(
    {
        **dict.fromkeys(
            ("member_id", "kind", "role", "subtopology_id", "topic", "topic_id"), pl.String()
        ),
        "partitions": pl.List(pl.Int32()),
        "about": ABOUT,
    }
)
_NOWHERE: Final = pl.lit([NO_PARTITION], dtype=pl.List(pl.Int32()))


def record_items(records: pl.DataFrame, members: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """Return the items of records of one kind: `ROW` and `items`, a list of `ITEM`.

    Args:
        records: `ROW`, `is_tombstone` and the decoded `value`.
        members: Of records of classic groups `members_of_classic`, else not looked at.
        kind: What the records say.
    """
    if kind.family == CLASSIC:
        parts = _of_classic(members)
    elif kind.role in MEMBER_ROLES:
        parts = _of_one_member(records, kind)
    else:
        parts = []
    return listed(parts, ITEM, "items")


def listed(parts: Iterable[pl.DataFrame], kind: pl.Struct, name: str) -> pl.DataFrame:
    """Return `ROW` and the list of what it has: structs of columns, null where a part lacks one."""
    fields = kind.to_schema()
    nothing = pl.DataFrame(schema={ROW: pl.get_index_type(), **fields})
    things = pl.concat([nothing, *parts], how="diagonal_relaxed").sort(ROW, maintain_order=True)
    structs = things.select(ROW, pl.struct(pl.col(each).cast(fields[each]) for each in fields))
    return structs.select(ROW, pl.nth(1).alias(name)).group_by(ROW, maintain_order=True).agg(name)


def members_of_classic(records: pl.DataFrame) -> pl.DataFrame:
    """Return the members that values of classic groups list.

    Returns:
        `ROW`, `protocol_type` of the group, and of each member its decoded columns but what its
        bytes were, `assignment_bytes` (how many these were) and `about`.
    """
    value = pl.col("value").struct
    who = records.select(
        ROW, text(value.field("protocol_type")), value.field("members").alias("member")
    )
    member = pl.col("member").struct
    named = ("member_id", "group_instance_id", "client_id", "client_host")
    decoded = ("subscription_decoded", "assignment_decoded")
    timeouts = ("rebalance_timeout", "session_timeout")
    return (
        who.explode("member", keep_nulls=False, empty_as_null=False)
        .select(
            ROW,
            "protocol_type",
            member.field(*named, *timeouts, *decoded),
            assignment_bytes=member.field("assignment").bin.size(),
        )
        .with_columns(about=pl.struct(ABOUT.to_schema().keys()))
    )


def about_member(kind: Kind) -> pl.Expr:
    """Return who a member is, of the value of its metadata; null for a tombstone."""
    value = pl.col("value").struct
    has_instance = kind.family in {CONSUMER, STREAMS}
    instance = value.field("instance_id") if has_instance else pl.lit(None, pl.String())
    about = pl.struct(
        instance.alias("group_instance_id"), value.field("client_id"), value.field("client_host")
    )
    return pl.when(~pl.col("is_tombstone")).then(about)


def _of_classic(members: pl.DataFrame) -> list[pl.DataFrame]:
    own = members.select(ROW, "member_id", "about")
    topics = pl.col("subscription_decoded").struct.field("topics")
    given = (
        members.select(
            ROW,
            "member_id",
            "about",
            pl.col("assignment_decoded").struct.field("assigned_partitions").alias("given"),
        )
        .explode("given", keep_nulls=False, empty_as_null=False)
        .unnest("given")
    )
    return [
        own.with_columns(kind=pl.lit(PRESENCE), partitions=_NOWHERE),
        own.with_columns(
            members.select(topic=_words(topics, pl.lit(""))),
            kind=pl.lit(SUBSCRIPTION),
            partitions=_NOWHERE,
        ),
        given.with_columns(kind=pl.lit(CURRENT)),
    ]


def _of_one_member(records: pl.DataFrame, kind: Kind) -> list[pl.DataFrame]:
    values = records.filter(~pl.col("is_tombstone"))
    there = values.select(ROW, kind=pl.lit(PRESENCE), partitions=_NOWHERE)
    if kind.role == MEMBER:
        return [there, *_chosen(values, kind)]
    given = [_list_items(values, *each) for each in _lists_of(kind)]
    return given if kind.role == TARGET else [there, *given]


def _chosen(values: pl.DataFrame, kind: Kind) -> list[pl.DataFrame]:
    """Return what members subscribe to, and the assignor that one of a consumer group names."""
    value = pl.col("value").struct
    names, regex = pl.lit(None, pl.List(pl.String())), pl.lit("")
    if kind.family != STREAMS:
        names = value.field("subscribed_topic_names")
    if kind.family == CONSUMER:
        regex = value.field("subscribed_topic_regex")
    chosen = [
        values.select(
            ROW, kind=pl.lit(SUBSCRIPTION), topic=_words(names, regex), partitions=_NOWHERE
        )
    ]
    if kind.family == CONSUMER:
        name = text(value.field("server_assignor"))
        partitions = pl.when(name.is_not_null()).then(_NOWHERE)
        nobody = pl.lit([], dtype=pl.List(pl.Int32()))
        chosen.append(
            values.select(
                ROW, kind=pl.lit(ASSIGNOR), topic=name, partitions=partitions.fill_null(nobody)
            )
        )
    return chosen


def _words(topics: pl.Expr, regex: pl.Expr) -> pl.Expr:
    """Return a subscription as words, which stand where a topic's name does."""
    names = in_name_order(topics).list.join(",", ignore_nulls=True)
    return pl.concat_str(names.fill_null(""), regex.fill_null(""), separator=" ")


def in_name_order(lists: pl.Expr) -> pl.Expr:
    """Sort lists of names."""
    return lists.map_batches(_in_name_order, pl.List(pl.String()), is_elementwise=True)


def _in_name_order(lists: pl.Series) -> pl.Series:
    """Sort only lists of several names, as to sort one name takes as long as some."""
    several = lists.list.len().fill_null(0) > 1
    if not several.any():
        return lists
    places = several.cum_sum().cast(pl.Int64) + (len(lists) - 1)
    here = pl.int_range(len(lists), eager=True)
    ordered = lists.filter(several).list.sort()
    return pl.concat([lists, ordered]).gather(places.zip_with(several, here))


def _lists_of(kind: Kind) -> list[tuple[str, str | None, str]]:
    """Return the lists of values: which kind of items each holds, in which role, and its name."""
    if kind.family == STREAMS:
        suffixes = {TARGET: "_tasks"}
        if kind.role == CURRENT:
            suffixes = {CURRENT: "_tasks", PENDING: "_tasks_pending_revocation"}
        return [
            (what, role, f"{role}{suffix}") for what, suffix in suffixes.items() for role in ROLES
        ]
    if kind.role == TARGET:
        return [(TARGET, None, "topic_partitions")]
    lists: list[tuple[str, str | None, str]] = [(CURRENT, None, "assigned_partitions")]
    if kind.family == CONSUMER:
        lists.append((PENDING, None, "partitions_pending_revocation"))
    return lists


def _list_items(values: pl.DataFrame, what: str, role: str | None, name: str) -> pl.DataFrame:
    of_what = "topic_id" if role is None else "subtopology_id"
    each = pl.col("each").struct
    return (
        values.select(ROW, pl.col("value").struct.field(name).alias("each"))
        .explode("each", keep_nulls=False, empty_as_null=False)
        .select(
            ROW,
            each.field(of_what, "partitions"),
            kind=pl.lit(what),
            role=pl.lit(role, pl.String()),
        )
    )
