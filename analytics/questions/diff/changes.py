"""Rows of two states side by side: what became of each, and what an election took away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import in_contract_order
from analytics.dump.files.model import METADATA_LOG
from analytics.replay.dump.followed_lines import parsed_time
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import DivergenceEntry

# What an election took away: rows whose record is on a line that the second state lost.

APPEARED: Final = "appeared"
VANISHED: Final = "vanished"
WENT_BACK: Final = "went_back"
CHANGED: Final = "changed"
LOST: Final = "lost_by_election"
CAME_BACK: Final = "deletion_lost_by_election"

LOST_LINES: Final = pl.Schema(
    {
        "home": pl.Int64(),
        "diverges_at": pl.Int64(),
        "copy": pl.String(),
        "elected_at": pl.Datetime("us", "UTC"),
        "elected_after": pl.Datetime("us", "UTC"),
        "groups_only_there": pl.List(pl.String()),
    }
)
"""Lines that the first state is of, and the second is not; one a partition.

Where `elected_after` is there, the election was between it and `elected_at`.
"""

Followed = tuple[str, int, str]
"""Topic, partition and copy of a followed line."""


def followed_copies(state: ReplayedWorkspace) -> set[Followed]:
    """Return topic, partition and copy of the lost lines a state is of, chosen or then in force."""
    preferred = state.manifest["options"].get("prefer_copy")
    return {
        *((each.topic, each.partition, each.copy) for each in state.lines),
        *(
            (each["topic"], each["partition"], each["copy"])
            for each in state.manifest.get("divergences", ())
            if each["copy"] == preferred
        ),
    }


def lost_lines(
    divergences: Iterable[DivergenceEntry],
    before: Collection[Followed],
    after: Collection[Followed],
    topic: str,
) -> pl.DataFrame:
    """Return the lines of a topic that were lost between two states (`LOST_LINES`).

    Args:
        divergences: As the manifest has them.
        before: Lines that did not survive, and that the first state follows.
        after: Those that the second state follows.
        topic: The internal topic.
    """
    gone = set(before) - set(after)
    rows = [
        {
            "home": each["partition"],
            "diverges_at": each["diverges_at"],
            "copy": each["copy"],
            "elected_at": parsed_time(each["elected_at"]),
            "elected_after": None
            if _is_exact(each)
            else parsed_time(each.get("lost_to_timestamp")),
            "groups_only_there": each.get("groups_only_there") or [],
        }
        for each in divergences
        if each["topic"] == topic and (topic, each["partition"], each["copy"]) in gone
    ]
    return pl.DataFrame(rows, LOST_LINES)


def _is_exact(line: DivergenceEntry) -> bool:
    return line.get("election_shown_by") == METADATA_LOG


def with_elections(rows: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Say of each row whether an election took away what the first state had.

    Args:
        rows: With `group_id`, `change`, and `coordinator_partition` and `record_offset` of both
            states.
        lines: As `LOST_LINES`.

    Returns:
        The rows with `cause` (null where it was no election), and the `copy` that alone has the
        record, `elected_at` and `elected_after`, all null where `cause` is.
    """
    homes = (f"{side}_coordinator_partition" for side in ("from", "to"))
    rows = rows.with_columns(pl.coalesce(*homes).cast(pl.Int64).alias("home"))
    only_there = (
        lines.select("home", group_id="groups_only_there")
        .explode("group_id")
        .unique()
        .with_columns(pl.lit(value=True).alias("is_only_there"))
    )
    rows = rows.join(lines.drop("groups_only_there"), "home", "left").join(
        only_there, ["home", "group_id"], "left"
    )
    change, line = pl.col("change"), pl.col("diverges_at")
    was_lost = (pl.col("from_record_offset") >= line) | pl.col("is_only_there")
    came_back = pl.col("to_record_offset") < line
    cause = first_of(
        (change.is_in([WENT_BACK, VANISHED, CHANGED]) & was_lost, LOST),
        ((change == APPEARED) & came_back, CAME_BACK),
    )
    of_election = ("copy", "elected_at", "elected_after")
    return (
        rows.with_columns(cause.alias("cause"))
        .with_columns(
            pl.when(pl.col("cause").is_not_null()).then(name).alias(name) for name in of_election
        )
        .drop("home", "diverges_at", "is_only_there")
    )


def first_of(*cases: tuple[pl.Expr, str]) -> pl.Expr:
    """Return the word of the first case that is true, null where none is."""
    word = pl.lit(None, pl.String())
    for is_case, its in reversed(cases):
        word = pl.when(is_case).then(pl.lit(its)).otherwise(word)
    return word


# Rows of two states side by side, and what became of each: offsets, groups, members, shares.

MOVED: Final = "moved"
CANNOT_TELL: Final = "cannot_tell"
EPOCH_CHANGED: Final = "leader_epoch_changed"
"""The same offset, read under another leader epoch: perhaps another record."""
JOINED, LEFT, RESTARTED = "joined", "left", "restarted"

OFFSETS, GROUPS = "changed_offsets", "changed_groups"
SHARE_PARTITIONS, MEMBERS = "changed_share_partitions", "changed_members"

INCOMPLETE_GROUPS: Final = pl.Schema({"group_id": pl.String(), "reason": pl.String()})
"""Groups of which one of the states does not tell all, and why."""
LEFT_OUT_TOPICS: Final = pl.Schema({"topic": pl.String(), "left_out": pl.String()})
"""Topics of whose offsets one of the states has none because it was made without them, and why."""

_PLACE: Final = ("coordinator_partition", "record_offset")
_KEY: Final = ("group_id", "topic", "partition")
OFFSET_COLUMNS: Final = (
    *(*_KEY, "committed_offset", "committed_leader_epoch", "commit_timestamp"),
    *(*_PLACE, "missing"),
)
"""Of the table `committed_offsets`, what is compared, and what says how sure that is."""

_OF_GROUP: Final = (
    *("group_type", "protocol_type", "state", "epoch", "assignment_epoch", "protocol"),
    "member_count",
)
GROUP_COLUMNS: Final = ("group_id", *_OF_GROUP, *_PLACE)
"""Of the table `groups`, what is compared, and where it is from."""

_MEMBER: Final = ("group_id", "member_id")
_OF_MEMBER: Final = ("group_instance_id", "client_id", "client_host")
MEMBER_COLUMNS: Final = (*_MEMBER, *_OF_MEMBER)
"""Of the table `members`, what is compared or shown."""

_SHARE_KEY: Final = ("group_id", "topic_id", "partition")
_OF_SHARE: Final = (
    *("phase", "state_epoch", "available_count", "acknowledged_count", "archiving_count"),
    *("archived_count", "max_delivery_count", "delivery_complete_count"),
)
SHARE_COLUMNS: Final = (*_SHARE_KEY, "topic", "start_offset", *_OF_SHARE, *_PLACE, "missing")
"""Of the table `share_partitions`, what is compared or shown."""

_FROM, _TO = "from_", "to_"
_VANISHED: Final = (~pl.col("in_to"), VANISHED)
_APPEARED: Final = (~pl.col("in_from"), APPEARED)


def changed_offsets(
    before: pl.DataFrame,
    after: pl.DataFrame,
    incomplete: pl.DataFrame,
    born_again: pl.DataFrame,
    lost: pl.DataFrame,
    left_out: pl.DataFrame,
) -> pl.DataFrame:
    """Return the committed offsets that differ, or may differ.

    Args:
        before: `OFFSET_COLUMNS` of the first state.
        after: Those of the second.
        incomplete: Groups of which one state does not tell all (`INCOMPLETE_GROUPS`).
        born_again: As `topics_born_again` returns it.
        lost: Lines of the offsets topic that the second state lost (`LOST_LINES`).
        left_out: Topics that one state was made without (`LEFT_OUT_TOPICS`).

    Returns:
        The table `changed_offsets`: `difference` in records, null where one offset is absent;
        `note` where the topic is another one of the same name.
    """
    rows = _paired(before.select(OFFSET_COLUMNS), after.select(OFFSET_COLUMNS), _KEY)
    rows = rows.join(left_out, "topic", "left")
    epoch_changed = (_differs("committed_leader_epoch"), EPOCH_CHANGED)
    doubt = pl.coalesce("left_out", _ONE_REASON)
    rows = _with_moves(rows, "committed_offset", epoch_changed, doubt, incomplete)
    # An offset that a lost record may have changed is left out: `reason` says what it may be.
    rows = rows.with_columns(
        pl.when(pl.col(f"{side}missing").is_null())
        .then(f"{side}committed_offset")
        .alias(f"{side}committed_offset")
        for side in (_FROM, _TO)
    )
    rows = with_elections(rows, lost).join(born_again, "topic", "left")
    return in_contract_order(OFFSETS, rows)


def topics_born_again(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the topics that have another id in the second state.

    Args:
        before: The table `topics` of the first state.
        after: That of the second.

    Returns:
        `topic`, `note`.
    """
    both = _living(before).join(_living(after), "topic", suffix="_now")
    note = pl.format("the topic was created again: {} is now {}", "topic_id", "topic_id_now")
    is_another = pl.col("topic_id") != pl.col("topic_id_now")
    return both.filter(is_another).select("topic", note.alias("note"))


def _living(topics: pl.DataFrame) -> pl.DataFrame:
    """Return the ids of topics that are there; one name has one."""
    is_there = pl.col("deleted_at").is_null() & pl.col("topic_id").is_not_null()
    known = topics.filter(is_there & pl.col("topic").is_not_null())
    return known.group_by("topic").agg(pl.col("topic_id").max())


def changed_groups(
    before: pl.DataFrame, after: pl.DataFrame, incomplete: pl.DataFrame, lost: pl.DataFrame
) -> pl.DataFrame:
    """Return the groups that differ in type, state, epochs, assignor or number of members.

    Groups of which one state does not tell all may differ, and are among them.

    Args:
        before: `GROUP_COLUMNS` of the first state.
        after: Those of the second.
        incomplete: Groups of which one state does not tell all (`INCOMPLETE_GROUPS`).
        lost: Lines of the offsets topic that the second state lost (`LOST_LINES`).

    Returns:
        The table `changed_groups`.
    """
    rows = _paired(before.select(GROUP_COLUMNS), after.select(GROUP_COLUMNS), ["group_id"])
    rows = rows.join(incomplete.rename({"reason": "incomplete"}), "group_id", "left")
    is_changed = reduce(or_, map(_differs, _OF_GROUP))
    change = first_of(_VANISHED, _APPEARED, (is_changed, CHANGED))
    rows = _with_change(rows, change, pl.col("incomplete"), incomplete)
    return in_contract_order(GROUPS, with_elections(rows, lost))


def changed_members(
    before: pl.DataFrame, after: pl.DataFrame, incomplete: pl.DataFrame
) -> pl.DataFrame:
    """Return the members who joined, left, or came back under another id (static membership).

    Args:
        before: `MEMBER_COLUMNS` of the first state.
        after: Those of the second.
        incomplete: Groups of which one state does not tell all (`INCOMPLETE_GROUPS`).

    Returns:
        The table `changed_members`: `previous_member_id` of who restarted.
    """
    rows = _paired(before.select(MEMBER_COLUMNS), after.select(MEMBER_COLUMNS), _MEMBER)
    change = first_of((~pl.col("in_to"), LEFT), (~pl.col("in_from"), JOINED))
    rows = _with_change(rows, change, _NO_DOUBT, incomplete)
    rows = rows.with_columns(
        pl.coalesce(f"{_TO}{name}", f"{_FROM}{name}").alias(name) for name in _OF_MEMBER
    )
    instance = ["group_id", "group_instance_id"]
    old = rows.filter(~pl.col("in_to"))
    previous = old.select(*instance, pl.col("member_id").alias("previous_member_id"))
    new = rows.filter("in_to").join(previous, instance, "left")
    came_back = pl.col("previous_member_id").is_not_null()
    restarted = (came_back & pl.col("reason").is_null(), RESTARTED)
    new = new.with_columns(pl.coalesce(first_of(restarted), "change").alias("change"))
    again = new.filter(came_back).select("group_id", member_id="previous_member_id")
    gone = old.join(again, _MEMBER, "anti")
    return in_contract_order(MEMBERS, pl.concat([new, gone], how="diagonal"))


def changed_share_partitions(
    before: pl.DataFrame,
    after: pl.DataFrame,
    incomplete: pl.DataFrame,
    lost: pl.DataFrame,
    lost_before: Collection[int] = (),
    lost_after: Collection[int] = (),
) -> pl.DataFrame:
    """Return the share partitions whose start offset moved or whose delivery state changed.

    Args:
        before: `SHARE_COLUMNS` of the first state.
        after: Those of the second.
        incomplete: Groups of which one state does not tell all (`INCOMPLETE_GROUPS`).
        lost: Lines of the share state topic that the second state lost (`LOST_LINES`).
        lost_before: Partitions of the share state topic of which the first state knows nothing.
        lost_after: Those of which the second knows nothing.

    Returns:
        The table `changed_share_partitions`: `difference` in offsets.
    """
    rows = _paired(before.select(SHARE_COLUMNS), after.select(SHARE_COLUMNS), _SHARE_KEY)
    changed = (reduce(or_, map(_differs, ("start_offset", *_OF_SHARE))), CHANGED)
    rows = _with_moves(rows, "start_offset", changed, _ONE_REASON, incomplete)
    without_home = (_without_home(_FROM, _TO, lost_after), _without_home(_TO, _FROM, lost_before))
    rows = _with_cannot_tell(rows, pl.coalesce("reason", *without_home))
    rows = rows.with_columns(pl.coalesce("to_topic", "from_topic").alias("topic"))
    return in_contract_order(SHARE_PARTITIONS, with_elections(rows, lost))


def _without_home(there: str, absent: str, lost: Collection[int]) -> pl.Expr:
    """Return why a state that has no row of a share partition may have had one."""
    home = pl.col(f"{there}coordinator_partition")
    words = pl.format(
        f"its state belongs to {SHARE_GROUP_STATE}-{{}}, of which one state knows nothing or not "
        "all",
        home,
    )
    return pl.when(home.is_in(sorted(lost)) & ~pl.col(f"in_{absent}".rstrip("_"))).then(words)


# What all tables have in common: the same row of both states, and what became of it.


def _paired(before: pl.DataFrame, after: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Put the rows of two states with the same key side by side.

    Args:
        before: The first state; one row a key.
        after: The second state, with the same columns.
        keys: Columns that tell rows apart.

    Returns:
        The keys, the other columns twice as ``from_<name>`` and ``to_<name>`` (null where a state
        has no such row), and `in_from`, `in_to`.
    """
    sides = (_side(before, keys, _FROM), _side(after, keys, _TO))
    rows = sides[0].join(sides[1], list(keys), "full", coalesce=True)
    return rows.with_columns(pl.col("in_from", "in_to").fill_null(value=False))


def _side(rows: pl.DataFrame, keys: Sequence[str], prefix: str) -> pl.DataFrame:
    names = {each: prefix + each for each in rows.columns if each not in keys}
    return rows.rename(names).with_columns(pl.lit(value=True).alias(f"in_{prefix}".rstrip("_")))


_NO_DOUBT: Final = pl.lit(None, pl.String())


def _reason_of_both(before: pl.Expr, after: pl.Expr) -> pl.Expr:
    """Return what either state lacks, in words; null where neither lacks anything."""
    words = [pl.format("from: {}", before), pl.format("to: {}", after)]
    both = pl.when(before.is_not_null() | after.is_not_null()).then(
        pl.concat_str(words, separator="; ", ignore_nulls=True)
    )
    return pl.when(before == after).then(before).otherwise(both)


_ONE_REASON: Final = _reason_of_both(pl.col("from_missing"), pl.col("to_missing"))


def incomplete_in_either(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Return the groups of which either state does not tell all, with the reasons of both.

    Args:
        first: `INCOMPLETE_GROUPS` of the first state.
        second: Those of the second.
    """
    rows = first.join(second, "group_id", "full", coalesce=True, suffix="_of_second")
    words = [pl.format("from: {}", "reason"), pl.format("to: {}", "reason_of_second")]
    reason = pl.concat_str(words, separator="; ", ignore_nulls=True)
    return rows.select("group_id", reason.alias("reason"))


def _differs(name: str) -> pl.Expr:
    """Return where a column has different values; null is a value of its own."""
    return pl.col(_FROM + name).ne_missing(pl.col(_TO + name))


def _with_moves(
    rows: pl.DataFrame,
    offset: str,
    otherwise: tuple[pl.Expr, str],
    doubt: pl.Expr,
    incomplete: pl.DataFrame,
) -> pl.DataFrame:
    """Keep the rows whose offset differs, and say which way it went.

    Args:
        rows: As `_paired` returns them, with `group_id`.
        offset: The column.
        otherwise: Rows whose offset stands and that differ all the same, and the word for them.
        doubt: As `_with_change` takes it.
        incomplete: As `_with_change` takes it.

    Returns:
        What `_with_change` returns, and `difference` (offsets; null where one is absent).
    """
    old, new = pl.col(_FROM + offset), pl.col(_TO + offset)
    change = first_of(_VANISHED, _APPEARED, (new < old, WENT_BACK), (new > old, MOVED), otherwise)
    return _with_change(rows, change, doubt, incomplete).with_columns(
        (new - old).alias("difference")
    )


def _with_change(
    rows: pl.DataFrame, change: pl.Expr, doubt: pl.Expr, incomplete: pl.DataFrame
) -> pl.DataFrame:
    """Keep the rows that differ, and say what became of them.

    Args:
        rows: As `_paired` returns them, with `group_id`.
        change: What became of each row; null where nothing did.
        doubt: Why a state may have had something else: rows that look alike may differ too.
        incomplete: As `INCOMPLETE_GROUPS`: where one state does not tell all of a group, no
            difference is sure.

    Returns:
        The rows that differ with `change` and `reason` (null where the change is sure).
    """
    rows = rows.with_columns(change.alias("change"), doubt.alias("doubt"))
    may_differ = pl.col("change").is_not_null() | pl.col("doubt").is_not_null()
    rows = rows.filter(may_differ).join(incomplete, "group_id", "left")
    return _with_cannot_tell(rows, pl.coalesce("reason", "doubt"))


def _with_cannot_tell(rows: pl.DataFrame, reason: pl.Expr) -> pl.DataFrame:
    """Let rows that have a reason say `CANNOT_TELL`."""
    unsure = pl.when(reason.is_not_null()).then(pl.lit(CANNOT_TELL))
    return rows.with_columns(reason.alias("reason"), pl.coalesce(unsure, "change").alias("change"))
