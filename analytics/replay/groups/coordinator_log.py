"""Every record about a group but its offsets, and what it holds: what the coordinator replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from analytics.contracts import POSITION, TIME, present, text
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    ASSIGNOR,
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    CURRENT,
    GROUP,
    GROUP_KEY,
    KINDS,
    MEMBER,
    MEMBER_DETAILS,
    MEMBER_ROLES,
    PENDING,
    PRESENCE,
    SHARE,
    STREAMS,
    SUBSCRIPTION,
    TARGET,
    TOPOLOGY,
    Kind,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.replay.log.log_times import Decoded

# What records about groups hold, as items: who is there, subscribes to what, has or shall have
# it.
#
# A thing that a record holds is a row here, and lists are made of these rows at the end: to take
# nested lists apart and to put them together is many times faster than to change them in place.

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
        parts = _items_of_classic(members)
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


def _items_of_classic(members: pl.DataFrame) -> list[pl.DataFrame]:
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


# Every record about a group but its offsets, with what it says: what the coordinator replays.
#
# What a record says of its group is the same for every type once it is written down as items: a
# member is there, subscribes to something, has or shall have partitions; what it says of members
# besides is in the terms of the table `members`. A snapshot of a classic group holds the items of
# all its members, the records of other groups those of one. Both the state
# (`analytics.replay.groups.fold`) and the history, in which each record is a step, are made of
# it.

_DETAILS: Final = pl.Struct(pl.Schema(pa.schema(MEMBER_DETAILS)))
"""`MEMBER_DETAILS` as polars has it."""
VALUE_COLUMNS: Final = {
    "epoch": pl.Int32(),
    "member_state": pl.Int32(),
    "previous_epoch": pl.Int32(),
    "protocol": pl.String(),
    "leader": pl.String(),
    "protocol_type": pl.String(),
    "state_ms": pl.Int64(),
    "unread": pl.Int32(),
    "validated_epoch": pl.Int32(),
    "process_id": pl.String(),
    "members": pl.List(_DETAILS),
    "about": ABOUT,
    "items": pl.List(ITEM),
}
"""What a record may say; null where it does not."""
LOG: Final = pl.Schema(
    {
        GROUP_KEY[0]: pl.Int32(),
        GROUP_KEY[1]: pl.String(),
        "kind": pl.Int32(),
        "family": pl.String(),
        "role": pl.String(),
        "creates": pl.Boolean(),
        "record_type": pl.Int16(),
        "member_id": pl.String(),
        "offset": pl.Int64(),
        "timestamp": TIME,
        "batch": pl.Int64(),
        "batch_offset": pl.Int64(),
        "is_tombstone": pl.Boolean(),
        "position": pl.Struct(
            dict(zip(POSITION, (pl.Int32(), pl.String(), pl.String(), pl.Int64()), strict=True))
        ),
        **VALUE_COLUMNS,
    }
)


def coordinator_log(decoded: Decoded) -> pl.DataFrame:
    """Gather the records of all groups with what they say.

    Returns:
        `LOG`: `coordinator_partition`, `group_id`, `kind` (its place in `KINDS`), `family`, `role`,
        `creates`, `record_type`, `member_id`, `offset`, `timestamp`, `batch` (tells which records
        were written together), `batch_offset`, `is_tombstone`, `position` (a struct of `POSITION`)
        and the columns of `VALUE_COLUMNS`.
    """
    # Few dumps have records of all kinds.
    told = [
        _log_rows(decoded[name], number, kind)
        for number, (name, kind) in enumerate(KINDS.items())
        if decoded[name].height
    ]
    return pl.concat([LOG.to_frame(), *told], how="diagonal", rechunk=True)


def _is_unread() -> pl.Expr:
    """Return whether a member was given something that is not of the consumer protocol."""
    return (pl.col("assignment_bytes") > 0) & pl.col("assignment_decoded").is_null()


def _log_rows(records: pl.DataFrame, number: int, kind: Kind) -> pl.DataFrame:
    records = records.with_row_index(ROW)
    key = pl.col("key").struct
    told = records.select(
        ROW,
        pl.col("partition").alias(GROUP_KEY[0]),
        key.field(kind.group_field).alias(GROUP_KEY[1]),
        pl.lit(number, pl.Int32()).alias("kind"),
        pl.lit(kind.family).alias("family"),
        pl.lit(kind.role).alias("role"),
        pl.lit(kind.creates).alias("creates"),
        "record_type",
        "offset",
        "timestamp",
        # Archived rows do not name their batch; what was written together has one time.
        pl.coalesce("batch_offset", -pl.col("timestamp").dt.epoch("us"), "offset").alias("batch"),
        "batch_offset",
        "is_tombstone",
        pl.struct(POSITION).alias("position"),
        *(each.cast(LOG[name]).alias(name) for name, each in _values_of(kind).items()),
    )
    return _with_lists(told, records, kind).drop(ROW)


def _values_of(kind: Kind) -> dict[str, pl.Expr]:
    """Return what records of a kind say besides lists."""
    value, key = pl.col("value").struct, pl.col("key").struct
    said = {"member_id": key.field("member_id")} if kind.role in MEMBER_ROLES else {}
    epochs = {
        GROUP: "generation" if kind.family == CLASSIC else "epoch",
        ASSIGNMENT_EPOCH: "assignment_epoch",
        TOPOLOGY: "epoch",
        CURRENT: "member_epoch",
    }
    if kind.role in epochs:
        said["epoch"] = value.field(epochs[kind.role])
    if kind.role == GROUP and kind.family == CLASSIC:
        said |= {name: text(value.field(name)) for name in ("protocol", "leader", "protocol_type")}
        said["state_ms"] = value.field("current_state_timestamp")
    elif kind.role == GROUP and kind.family == STREAMS:
        said["validated_epoch"] = value.field("validated_topology_epoch")
    elif kind.role == CURRENT:
        said["previous_epoch"] = value.field("previous_member_epoch")
        said["member_state"] = value.field("state")
    elif kind.role == MEMBER:
        said["about"] = about_member(kind)
        if kind.family == STREAMS:
            said["process_id"] = value.field("process_id")
    return said


def _with_lists(rows: pl.DataFrame, records: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """Add to records what they list: nothing where they hold nothing, null where they cannot."""
    if kind.family == CLASSIC:
        holds = pl.col("value").struct.field("members").is_not_null()
        members = members_of_classic(records)
        unread = members.group_by(ROW).agg(
            _is_unread().sum().cast(VALUE_COLUMNS["unread"]).alias("unread")
        )
        held = {"members": _details(records, members, kind), "unread": unread}
    elif kind.role in MEMBER_ROLES:
        holds, members, held = ~pl.col("is_tombstone"), pl.DataFrame(), {}
        if kind.role == MEMBER:
            held["members"] = _details(records, members, kind)
    else:
        return rows
    held["items"] = record_items(records, members, kind)
    there = records.select(holds.alias("holds")).to_series()
    for name, each in held.items():
        nothing = pl.lit(0 if name == "unread" else [], dtype=VALUE_COLUMNS[name])
        rows = rows.join(each, ROW, "left", maintain_order="left").with_columns(
            pl.when(there).then(pl.col(name).fill_null(nothing))
        )
    return rows


def _details(records: pl.DataFrame, members: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """Return the members that values tell about: `ROW` and `members`, a list of `_DETAILS`.

    Args:
        records: `ROW`, `is_tombstone` and `value`: of a classic group each value tells about all
            members, of the others the value of a member's metadata about that one, without its
            name.
        members: Of records of classic groups `members_of_classic`, else not looked at.
        kind: What the records say.
    """
    if kind.family == CLASSIC:
        told = members.select(ROW, **_of_classic())
    else:
        told = records.filter(~pl.col("is_tombstone")).select(ROW, **_of_one(kind.family))
    return listed([told], _DETAILS, "members")


def _of_one(family: str) -> dict[str, pl.Expr]:
    value = pl.col("value").struct
    told = {name: value.field(name) for name in ("client_id", "client_host", "rack_id")}
    if family == CONSUMER:
        classic = value.field("classic_member_metadata")
        told |= {
            "group_instance_id": value.field("instance_id"),
            "subscribed_topics": value.field("subscribed_topic_names"),
            "subscribed_regex": text(value.field("subscribed_topic_regex")),
            "server_assignor": text(value.field("server_assignor")),
            "rebalance_timeout_ms": present(value.field("rebalance_timeout_ms")),
            "session_timeout_ms": present(classic.struct.field("session_timeout_ms")),
            "is_classic": classic.is_not_null(),
        }
    elif family == SHARE:
        told["subscribed_topics"] = value.field("subscribed_topic_names")
    elif family == STREAMS:
        told |= {
            "group_instance_id": value.field("instance_id"),
            "rebalance_timeout_ms": present(value.field("rebalance_timeout_ms")),
            "process_id": value.field("process_id"),
            "topology_epoch": value.field("topology_epoch"),
        }
    return told


def _of_classic() -> dict[str, pl.Expr]:
    session = present(pl.col("session_timeout"))
    subscription = pl.col("subscription_decoded").struct
    assignment = pl.col("assignment_decoded").struct
    names = ("member_id", "group_instance_id", "client_id", "client_host")
    return {name: pl.col(name) for name in names} | {
        "rack_id": subscription.field("rack_id"),
        "subscribed_topics": subscription.field("topics"),
        "rebalance_timeout_ms": pl.coalesce(present(pl.col("rebalance_timeout")), session),
        "session_timeout_ms": session,
        "is_classic": pl.lit(value=True),
        "subscription_fields_written": subscription.field("fields_written"),
        "assignment_fields_written": assignment.field("fields_written"),
        "missing": _why_unread(),
    }


def _why_unread() -> pl.Expr:
    """Return why nothing tells what a member was given; null where something does."""
    protocol = pl.col("protocol_type")
    foreign = pl.format(
        "the group is not a consumer group ({}): only its clients can read what they have",
        protocol.fill_null("no protocol"),
    )
    unread = pl.format(
        "the {} bytes of its assignment are not of the consumer protocol", "assignment_bytes"
    )
    is_foreign = protocol.ne_missing(pl.lit(CONSUMER_PROTOCOL))
    return pl.when(is_foreign).then(foreign).when(_is_unread()).then(unread)
