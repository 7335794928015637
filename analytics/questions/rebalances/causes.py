"""The table `rebalance_causes`: what led to each epoch, topics that grew among it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

from analytics.questions.rebalances.epochs import in_life_before
from analytics.replay.groups.group_records import CLASSIC, CONSUMER_PROTOCOL
from analytics.replay.log.losses import WHOLE, Coverage, lost_between, uncompacted_from
from schemas.evaluation_rules import coordinator_failures, rebalance_causes

# Topics that grew: an epoch was the first to assign a partition beyond all others.

_LIFE = ("coordinator_partition", "group_id", "life")
_TOPIC = (*_LIFE, "topic")
_MOST_NAMED: Final = 3
_EVER: Final = -1


def grown_topics(held: pl.DataFrame) -> pl.DataFrame:
    """Return by epoch the topics of which it assigned a partition beyond all before, in words.

    A classic group's records, and target assignments of the others, have all partitions of a topic
    at once: one beyond those that the group had of the topic before was not there then.

    Args:
        held: The table `assignment_history`.

    Returns:
        `coordinator_partition`, `group_id`, `life`, `epoch`, `grown`.
    """
    # What may have begun earlier is taken to have been there from the beginning.
    since = pl.when("from_is_bound").then(pl.lit(_EVER)).otherwise("from_epoch")
    return (
        _beyond(held, since)
        .sort(*_TOPIC, "epoch", "partition")
        .group_by(*_TOPIC, "epoch", maintain_order=True)
        .agg("partition")
        .with_columns(_words().alias("grown"))
        .group_by(*_LIFE, "epoch", maintain_order=True)
        .agg(pl.col("grown").str.join("; "))
    )


def perhaps_grown_topics(held: pl.DataFrame) -> pl.DataFrame:
    """Return the epochs that are the first left to assign a partition beyond all before.

    Compaction may have taken earlier ones that had it, too.

    Args:
        held: The table `assignment_history`.

    Returns:
        `coordinator_partition`, `group_id`, `life`, `epoch`, each once.
    """
    return _beyond(held, pl.col("from_epoch")).select(*_LIFE, "epoch").unique()


def _beyond(held: pl.DataFrame, since: pl.Expr) -> pl.DataFrame:
    """Return partitions beyond all of earlier epochs, and the epoch that had each first."""
    kind = (
        pl.when(pl.col("group_type") == CLASSIC).then(pl.lit("current")).otherwise(pl.lit("target"))
    )
    first = (
        held.filter((pl.col("kind") == kind) & pl.col("topic").is_not_null())
        .group_by(*_TOPIC, "partition")
        .agg(since.min().alias("epoch"))
        .drop_nulls("epoch")
    )
    before = (
        first.group_by(*_TOPIC, "epoch")
        .agg(pl.col("partition").max().alias("most"))
        .sort(*_TOPIC, "epoch")
        .with_columns(pl.col("most").cum_max().shift(1).over(_TOPIC).alias("before"))
    )
    return first.join(before, on=[*_TOPIC, "epoch"]).filter(pl.col("partition") > pl.col("before"))


def _words() -> pl.Expr:
    number = pl.col("partition").list.len().cast(pl.Int64)
    noun = pl.when(number == 1).then(pl.lit("partition")).otherwise(pl.lit("partitions"))
    listed = pl.col("partition").list.head(_MOST_NAMED).cast(pl.List(pl.String)).list.join(", ")
    more = pl.when(number > _MOST_NAMED).then(pl.format(" and {} more", number - _MOST_NAMED))
    return pl.format("{} has {} {}{} now", "topic", noun, listed, more.otherwise(pl.lit("")))


# The table `rebalance_causes`: what led to each epoch, as far as records tell.
#
# The client-side assignment proposal names what makes a group rebalance: members that come and
# go, its leader among them; a subscription that changes; a topic that grows, which the leader
# sees; a new assignment strategy once every member supports it; a coordinator that fails; and an
# assignment that fails. The last leaves no record: only that generations were joined and never
# synced.

(
    LEADER_LOST,
    PROTOCOL_SWITCH,
    TOPIC_GREW,
    SUBSCRIPTION,
    MEMBERS,
    COORDINATOR,
    NOT_SYNCED,
    NOTHING_ASSIGNED,
    NONE_RECORDED,
) = rebalance_causes()
STABLE = "Stable"
_WHO: Final = {
    "joined": "joined",
    "left": "left or timed out",
    "restarted": "restarted",
    "fenced": "fenced",
}
_PLACE = ("coordinator_partition", "group_id", "from_offset")
_OF_EPOCH = ("leader", "protocol")
_RECORD_COLUMNS = ("group_id", "epoch", "at", "life", "coordinator_partition", "from_offset")


class _Cause(NamedTuple):
    """A cause, where it is one, in which words, and where records show it."""

    word: str
    is_there: pl.Expr
    detail: pl.Expr
    is_told: pl.Expr


def causes(
    rebalances: pl.DataFrame,
    epochs: pl.DataFrame,
    held: pl.DataFrame,
    coverage: Coverage = WHOLE,
    *,
    doubtful: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the table, in the order of `rebalances`.

    Args:
        rebalances: The table `rebalances`: of these epochs.
        epochs: The table `group_epochs`, of all times.
        held: The table `assignment_history`, of all times.
        coverage: What the dump holds: that nothing is recorded is told only where compaction took
            nothing since the epoch before.
        doubtful: Of `membership_changes` those that may be older than their record: `rebalances`
            leaves them out, and they may be the cause for all that is known.
    """
    since = pl.coalesce(pl.min_horizontal("last_from_offset", "from_offset"), "from_offset")
    rows = (
        rebalances.with_row_index("row")
        .join(_before(epochs), on=_PLACE, how="left", maintain_order="left")
        .join(grown_topics(held), on=[*_LIFE, "epoch"], how="left", maintain_order="left")
        .with_columns((since < uncompacted_from(coverage)).alias("is_compacted"))
    )
    doubts = [] if doubtful is None else [doubtful]
    rows = _with_doubt(rows, [*doubts, perhaps_grown_topics(held)])
    found = pl.concat(_of(rows, rank, cause) for rank, cause in enumerate(_causes()))
    unexplained = rows.join(found, on="row", how="anti")
    is_told = _is_whole() & ~pl.col("is_in_doubt")
    rest = _Cause(NONE_RECORDED, pl.lit(value=True), pl.lit(None, pl.String), is_told)
    told = pl.concat([found, _of(unexplained, 0, rest)]).sort("row", "rank")
    # An epoch on a line that may not have survived may be none of the group.
    began = pl.col("from_offset")
    survived = lost_between(coverage, began - 1, began + 1).is_null()
    return told.with_columns(pl.col("is_told") & survived)


def _with_doubt(rows: pl.DataFrame, doubtful: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add `is_in_doubt`: a member may have joined for the epoch, or a topic grown, or long before.

    Args:
        rows: Of epochs.
        doubtful: Epochs, by life, of what may be older than the first record that is left of it.
    """
    epoch = [*_LIFE, "epoch"]
    epochs = pl.concat(each.select(epoch) for each in doubtful)
    marks = epochs.unique().with_columns(pl.lit(value=True).alias("is_in_doubt"))
    return rows.join(marks, on=epoch, how="left", maintain_order="left").with_columns(
        pl.col("is_in_doubt").fill_null(value=False)
    )


def _of(rows: pl.DataFrame, rank: int, cause: _Cause) -> pl.DataFrame:
    return rows.filter(cause.is_there).select(
        "row",
        *_RECORD_COLUMNS,
        pl.lit(rank).alias("rank"),
        pl.lit(cause.word).alias("cause"),
        cause.detail.alias("detail"),
        cause.is_told.alias("is_told"),
    )


def _before(epochs: pl.DataFrame) -> pl.DataFrame:
    """Return what is told of each epoch, and of the one before it in the same life."""
    named = ("protocol_type", "partitions_assigned", *_OF_EPOCH)
    return epochs.sort(*_LIFE, "from_offset").select(
        *_PLACE,
        *(pl.col(name).alias(f"now_{name}") for name in named),
        *(in_life_before(pl.col(name)).alias(f"last_{name}") for name in _OF_EPOCH),
        in_life_before(pl.col("from_offset")).alias("last_from_offset"),
        in_life_before(pl.col("from_offset")).is_not_null().alias("has_last"),
    )


def _is_whole() -> pl.Expr:
    """Return whether no record since the epoch before was lost, and none may have been cleaned."""
    is_taken = pl.col("missing_is_compacted") | pl.col("is_compacted")
    return (pl.col("complete") & ~is_taken).fill_null(value=False)


def _causes() -> list[_Cause]:
    """Return all causes but that none is recorded, in the order in which they are told."""
    always, never = pl.lit(value=True), pl.lit(value=False)
    is_whole = _is_whole()
    missing = pl.col("missing_before").fill_null(0)
    is_between = is_whole & (missing == 0)
    failures = coordinator_failures()
    change = pl.col("coordinator_change")
    # Cases that leave the same records cannot be told from each other.
    one_case = [word for word, each in failures.items() if len(each.cases) <= 1]
    return [
        _Cause(
            LEADER_LOST,
            _leader_lost(),
            pl.format("{}; the leader is {} now", "last_leader", "now_leader"),
            is_between,
        ),
        _Cause(
            PROTOCOL_SWITCH,
            (pl.col("last_protocol") != pl.col("now_protocol"))
            & (pl.col("last_protocol") != "")
            & (pl.col("now_protocol") != ""),
            pl.format("{} to {}", "last_protocol", "now_protocol"),
            is_between,
        ),
        _Cause(
            TOPIC_GREW,
            pl.col("has_last") & pl.col("grown").is_not_null(),
            pl.col("grown"),
            is_whole,
        ),
        _Cause(
            SUBSCRIPTION, _is_any("subscription_changed"), _named("subscription_changed"), always
        ),
        _Cause(MEMBERS, pl.any_horizontal(*map(_is_any, _WHO)), _came_and_went(), always),
        _Cause(
            COORDINATOR,
            change.is_not_null(),
            change.replace_strict({word: each.leaves for word, each in failures.items()}),
            change.is_in(one_case),
        ),
        _Cause(NOT_SYNCED, missing > 0, pl.format("{} generations left no record", missing), never),
        _Cause(NOTHING_ASSIGNED, _gave_nothing(), pl.format("{} members", "member_count"), never),
    ]


def _leader_lost() -> pl.Expr:
    """Whether the leader went and another one followed.

    A static leader that restarts is the leader still, under another member id. The last member
    leads, too: when it goes there is nobody to lead.
    """
    went = pl.concat_list("left", "fenced").list.contains(pl.col("last_leader"))
    return pl.col("now_leader").is_not_null() & pl.col("last_leader").is_not_null() & went


def _gave_nothing() -> pl.Expr:
    return (
        (pl.col("group_type") == CLASSIC)
        & (pl.col("now_protocol_type") == CONSUMER_PROTOCOL)
        & (pl.col("state") == STABLE)
        & (pl.col("member_count") > 0)
        & (pl.col("now_partitions_assigned") == 0)
    )


def _came_and_went() -> pl.Expr:
    told = (
        pl.when(_is_any(name)).then(pl.format(f"{did}: {{}}", _named(name)))
        for name, did in _WHO.items()
    )
    return pl.concat_str(*told, separator="; ", ignore_nulls=True)


def _is_any(name: str) -> pl.Expr:
    return pl.col(name).list.len() > 0


def _named(name: str) -> pl.Expr:
    """Return the first of some names, and how many more there are."""
    more = pl.col(name).list.len().cast(pl.Int64) - _MOST_NAMED
    rest = pl.when(more > 0).then(pl.format(" and {} more", more)).otherwise(pl.lit(""))
    return pl.concat_str(pl.col(name).list.head(_MOST_NAMED).list.join(", "), rest)
