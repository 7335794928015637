"""Fields of a snapshot's state laid beside what its cluster answered: what differs.

Where one side lacks a whole thing, one row says so, and none of its fields: a group that only one
side has is one difference, and so are a member and an offset.

What a replayed snapshot says of groups, a field a row, as `cluster_answers` has answers.

Only fields that answers have: brokers tell no generation of classic groups and no target of share
groups. Values that answers leave out (no offset, an empty text) have no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import polars_rows
from analytics.replay.log.rules import replay_rules
from analytics.replayed.end_offsets import snapshot_at

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


KEY: Final = ("group_id", "member_id", "topic", "partition", "field")
"""What a value is of; null where it is about no member, no topic."""
NEEDS: Final = (
    *("groups", "members", "assignments", "committed_offsets", "pending_offsets"),
    *("share_partitions", "topics"),
)
_SCHEMA: Final = {
    **dict.fromkeys(("group_id", "member_id", "topic"), pl.String),
    "partition": pl.Int32,
    **dict.fromkeys(("field", "value", "missing"), pl.String),
}
_IS_CLASSIC: Final = pl.col("group_type") == "classic"
_NOT_CLASSIC: Final = pl.when(~_IS_CLASSIC)
_TYPE: Final = pl.col("group_type").replace({"simple": "classic"})
"""Brokers list groups that have offsets only as classic ones."""


def group_fields(state: ReplayedWorkspace, groups: pl.DataFrame) -> pl.DataFrame:
    """Return the fields of groups.

    Args:
        state: A replayed snapshot.
        groups: Rows of the table `groups`, simple ones as classic ones.
    """
    forgets = not replay_rules(state.release).streams_readiness_is_recorded
    # 4.1 forgets that a streams group was ready when it loads it: nothing is recorded of it.
    is_unknown = pl.lit(forgets) & (pl.col("group_type") == "streams")
    is_unknown &= pl.col("state") == "NotReady"
    return _unpivoted(
        groups,
        {
            "listed": pl.col("group_type"),
            "state": pl.when(~is_unknown).then("state"),
            "protocol_type": pl.when(_IS_CLASSIC).then("protocol_type"),
            "protocol": pl.col("protocol"),
            "epoch": _NOT_CLASSIC.then("epoch"),
            "assignment_epoch": _NOT_CLASSIC.then("assignment_epoch"),
        },
    )


def member_fields(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return the fields of members."""
    wanted = ("group_id", "group_type", "member_id", "group_instance_id", "client_id")
    names = (*wanted, "client_host", "rack_id", "member_epoch", "missing")
    members = polars_rows(state.tables.read("members", names))
    return _unpivoted(
        members,
        {
            **{name: pl.col(name) for name in ("member_id", *wanted[3:], "client_host")},
            "rack_id": _NOT_CLASSIC.then("rack_id"),
            "member_epoch": _NOT_CLASSIC.then("member_epoch"),
        },
    )


def assignment_fields(state: ReplayedWorkspace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return which member has which partition, and what members are to give back.

    The latter some releases answer as the member's and some do not. Brokers name no topic that was
    deleted since, and nothing of tasks of streams groups is compared.
    """
    names = ("group_id", "member_id", "kind", "role", "topic", "topic_id", "partition", "missing")
    rows = polars_rows(state.tables.read("assignments", names))
    rows = rows.filter(pl.col("role").is_null() & pl.col("topic").is_not_null())
    rows = rows.filter(pl.col("topic_id").is_null() | _is_there(state))
    given_back = rows.filter(pl.col("kind") == "pending_revocation")
    current = rows.filter(pl.col("kind") == "current")
    place = ("group_id", "member_id", "topic", "partition")
    return (
        _unpivoted(current, {"assigned": pl.lit("yes")}).join(
            given_back, list(place), "anti", nulls_equal=True
        ),
        given_back.select(place),
    )


def offset_fields(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return the fields of committed offsets."""
    fields = ("committed_offset", "committed_leader_epoch", "metadata")
    names = ("group_id", "topic", "partition", *fields, "missing")
    rows = polars_rows(state.tables.read("committed_offsets", names))
    rows = rows.filter(pl.col("committed_offset").is_not_null())
    return _unpivoted(rows, {name: pl.col(name) for name in fields})


def share_fields(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return where share partitions start."""
    names = ("group_id", "topic_id", "topic", "partition", "phase", "start_offset", "missing")
    rows = polars_rows(state.tables.read("share_partitions", names))
    rows = rows.filter(pl.col("topic").is_not_null() & _is_there(state))
    rows = rows.filter(pl.col("phase") == "initialized")
    return _unpivoted(rows, {"start_offset": pl.col("start_offset")})


def compared_groups(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return rows of the table `groups`, simple ones as the classic ones that brokers list."""
    names = ("group_id", "group_type", "state", "protocol_type", "protocol", "epoch")
    rows = polars_rows(
        state.tables.read(
            "groups", (*names, "assignment_epoch", "coordinator_partition", "missing")
        )
    )
    return rows.with_columns(_TYPE)


def _is_there(state: ReplayedWorkspace) -> pl.Expr:
    """Return whether the cluster described the topic of an id."""
    snapshot = snapshot_at(state)
    ids: Sequence[str | None] = [
        each["topic_id"] for each in (snapshot or {"topics": ()})["topics"]
    ]
    return pl.col("topic_id").is_in([each for each in ids if each is not None])


def _unpivoted(rows: pl.DataFrame, fields: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Return a row for each field of each row that has a value."""
    beside = [
        name if name in rows.columns else pl.lit(None, kind).alias(name)
        for name, kind in _SCHEMA.items()
        if name not in ("field", "value", "missing")
    ]
    parts = [
        rows.select(
            *beside,
            pl.lit(name).alias("field"),
            value.cast(pl.String).alias("value"),
            "missing",
        )
        for name, value in fields.items()
    ]
    found = pl.concat(parts).cast(_SCHEMA)  # type: ignore[arg-type]
    return found.filter(pl.col("value").is_not_null() & (pl.col("value") != ""))


GROUP, MEMBER, ASSIGNMENT, OFFSET, SHARE_PARTITION, LOOK = (
    *("group", "member", "assignment", "offset", "share_partition"),
    "look",
)
LISTED, DESCRIPTION, OFFSETS = "listed", "description", "offsets"
_QUESTIONS: Final = (DESCRIPTION, OFFSETS)
ANSWERED_BY: Final = {
    GROUP: DESCRIPTION,
    MEMBER: DESCRIPTION,
    ASSIGNMENT: DESCRIPTION,
    OFFSET: OFFSETS,
    SHARE_PARTITION: OFFSETS,
}
"""By kind the field that says that a group's question was answered."""
_PRESENCE: Final = {MEMBER: "member_id", OFFSET: "committed_offset"}
"""By kind the field without which a side does not have the thing at all."""
_PLACE: Final = KEY[:-1]


class Compared:
    """Both sides of one snapshot, kind by kind.

    Args:
        groups: `group_fields` of the state.
        answers: Rows of `cluster_answers` of the first look.
    """

    def __init__(self, groups: pl.DataFrame, answers: pl.DataFrame) -> None:
        self._answers = answers
        self._of_groups = groups
        of_groups = answers.filter(pl.col("kind") == GROUP)
        asked = of_groups.filter(pl.col("field").is_in([LISTED, *_QUESTIONS]))
        ours = groups.filter(pl.col("field") == LISTED)
        both = _beside(ours, asked.filter(pl.col("field") == LISTED))
        self.listed = both.filter(_differs())
        """Groups that one side lacks, or has as another type."""
        self._common = both.filter(~_differs()).select("group_id")
        refused = asked.filter(pl.col("error").is_not_null() & (pl.col("field") != LISTED))
        self.unanswered = refused.join(self._common, "group_id", "semi")
        """Questions to groups that both have which were not answered, with why."""

    def differences(self, kind: str, ours: pl.DataFrame) -> pl.DataFrame:
        """Return what differs of one kind, of groups that both sides have and that were answered.

        Args:
            kind: What is compared.
            ours: Fields of the state.

        Returns:
            `KEY`, `value`, `missing`, `answer`, `error`.
        """
        question = ANSWERED_BY[kind]
        refused = self.unanswered.filter(pl.col("field") == question)
        groups = self._common.join(refused, "group_id", "anti")
        ours = ours.filter(pl.col("field") != LISTED).join(groups, "group_id", "semi")
        asked = [LISTED, *_QUESTIONS]
        theirs = self._answers.filter(
            (pl.col("kind") == kind) & ~pl.col("field").is_in(asked)
        ).join(groups, "group_id", "semi")
        both = _beside(ours, theirs)
        found = both.filter(_differs())
        presence = _PRESENCE.get(kind)
        if presence is None:
            return found
        absent = found.filter(
            (pl.col("field") == presence) & (pl.col("value").is_null() | pl.col("answer").is_null())
        )
        others = found.join(absent, [*_PLACE], "anti", nulls_equal=True)
        return pl.concat([absent, others])


def without(differences: pl.DataFrame, absent: pl.DataFrame) -> pl.DataFrame:
    """Leave out what members have of whom one side knows nothing.

    Args:
        differences: Differences of assignments.
        absent: Differences of members.
    """
    gone = absent.filter(pl.col("field") == "member_id").select("group_id", "member_id")
    return differences.join(gone, ["group_id", "member_id"], "anti")


def of_kinds(parts: Iterable[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Return differences of all kinds, each with its `kind`."""
    return pl.concat(_with_kinds(parts))


def _with_kinds(parts: Iterable[tuple[str, pl.DataFrame]]) -> Iterator[pl.DataFrame]:
    for kind, rows in parts:
        yield rows.select(pl.lit(kind).alias("kind"), *KEY, "value", "missing", "answer", "error")


def _beside(ours: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    answered = theirs.select(*KEY, pl.col("value").alias("answer"), "error")
    return ours.join(answered, list(KEY), "full", coalesce=True, nulls_equal=True)


def _differs() -> pl.Expr:
    return ~pl.col("value").eq_missing(pl.col("answer"))
