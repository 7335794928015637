"""Offsets that were committed and that clients do not have any more.

They were on a line that did not survive, as another broker's log was elected; or no client reaches
them, as their group is looked for in another internal partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow.compute as pc

from analytics.engine.key_places import homes_in
from analytics.questions.timeline.history import IS_COMMIT, OffsetHistory
from analytics.questions.timeline.lost_commits import (
    LAST,
    OTHER_TYPES,
    LostLine,
    commits_in,
    last_on_line,
    markers_in,
)
from analytics.questions.timeline.words import (
    HIGH,
    LOST,
    LOST_BY_GROWTH,
    LOST_WITH_TOPIC,
    LOW,
    PLACE,
    VERDICTS,
    record_at,
    verdicts_on,
)
from analytics.replay.dump.choices import iso_time
from analytics.replay.log.rules import replay_rules
from analytics.replay.log.topic_homes import internal_partition
from analytics.replay.offsets.effective_commits import ended_commits
from analytics.workspace import DECODED
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

# Offsets that went back, vanished or came back because another broker's log was elected.
#
# `was` is what the lost line had last. `became` is the first commit after the election where that
# is before `was`: there the group has resumed. Else it is what the surviving line had in force when
# the election made it the truth. `cost` is `was` less `became`: so many records, at least, were
# read again, or skipped where it is negative. It is 0 where a member kept its position, and null
# where nothing tells from where the group read on. What is equal on both lines is no loss.

_UNANSWERED = "nothing shows that this commit was ever acknowledged"
_TIME: Final = VERDICTS["at"]
_LINE: Final = pl.Schema(
    {
        "line": pl.Int32(),
        "copy": pl.String(),
        "home": pl.Int32(),
        "diverges_at": pl.Int64(),
        "leader_epoch": pl.Int32(),
        "elected_at": _TIME,
        "elected_after": _TIME,
        "committed_below": pl.Int64(),
        "lacks": pl.String(),
        "other_topic": pl.String(),
        "uncompacted_from": pl.Int64(),
    }
)
_WAS, _BASE, _FIRST = (
    pl.col(name) for name in ("committed_offset", "before_offset", "after_offset")
)


def election_losses(
    lines: Iterable[LostLine], history: OffsetHistory, uncompacted_from: Mapping[int, int]
) -> pl.DataFrame:
    """Return a verdict for each place that a lost line had changed last.

    Args:
        lines: Of lines that did not survive.
        history: Of the line that did.
        uncompacted_from: By internal partition, the offset before which compaction took records.
    """
    changes = lost_changes([each for each in lines if each.last.height], uncompacted_from)
    if changes.is_empty():
        return VERDICTS.to_frame()
    lost = _with_survivor(changes, history)
    lost = lost.filter(_WAS.ne_missing(_BASE))
    became = _became()
    return verdicts_on(
        lost,
        pl.when(pl.col("other_topic").is_null())
        .then(pl.lit(LOST))
        .otherwise(pl.lit(LOST_WITH_TOPIC)),
        "lost_line",
        at=pl.col("elected_at"),
        not_before=pl.col("elected_after"),
        was=_WAS,
        committed_at=pl.when(_WAS.is_not_null()).then("timestamp"),
        became=became.offset,
        cost=pl.when(pl.col("lacks").is_null()).then(became.cost),
        confidence=pl.when(pl.col("lacks").is_null() & _is_committed())
        .then(pl.lit(HIGH))
        .otherwise(pl.lit(LOW)),
        record=record_at("record_offset", "home"),
        reason=pl.concat_str(became.why, *_remarks(), separator="; ", ignore_nulls=True),
    )


def lost_changes(lines: list[LostLine], uncompacted_from: Mapping[int, int]) -> pl.DataFrame:
    """Return the last change of each place; of copies that lost the same line, the longer one's."""
    if not lines:
        return LAST.to_frame()
    told = pl.DataFrame(
        [
            (
                *(number, each.copy, each.partition, each.diverges_at, each.leader_epoch),
                *(each.elected_at, each.elected_after, each.committed_below, each.lacks or None),
                *(each.other_topic, uncompacted_from.get(each.partition, 0)),
            )
            for number, each in enumerate(lines)
        ],
        _LINE,
        orient="row",
    )
    on_lines = _with_lines(LAST, [each.last for each in lines])
    types = _with_lines(OTHER_TYPES, [each.types for each in lines])
    lost = on_lines.join(told, "line", maintain_order="left")
    lost = lost.join(types, ["group_id", "line"], "left", maintain_order="left")
    same = [*PLACE, "home", "leader_epoch"]
    lost = lost.with_row_index("number").with_columns(pl.col("number").min().over(same))
    longest = lost.sort("record_offset", descending=True, maintain_order=True)
    longest = longest.unique(same, keep="first", maintain_order=True).sort("number").drop("number")
    # Whether what came after a line is on a line that was lost later, too.
    epoch = pl.col("leader_epoch").fill_null(0)
    return longest.with_columns((epoch.max().over(*PLACE, "home") > epoch).alias("is_followed"))


def _with_lines(schema: pl.Schema, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the tables of lines as one, with the number of the `line`."""
    numbered = [
        each.select(schema.names()).with_columns(pl.lit(number, pl.Int32).alias("line"))
        for number, each in enumerate(tables)
    ]
    nothing = schema.to_frame().with_columns(pl.lit(None, pl.Int32).alias("line"))
    return pl.concat([nothing, *numbered])


def _with_survivor(lost: pl.DataFrame, history: OffsetHistory) -> pl.DataFrame:
    """Add what the surviving line has before and after it parts: `before_…`, `after_…`.

    `has_before` and `has_after` say whether that is a commit; else there is none in force.
    """
    lost = lost.with_row_index("number")
    changes = history.rows.join(lost.select(*PLACE, "number", "diverges_at"), PLACE)
    changes = changes.sort("number", "index")
    is_before = pl.col("effective_offset") < pl.col("diverges_at")
    last, first = (
        changes.filter(is_before).unique("number", keep="last", maintain_order=True),
        changes.filter(~is_before).unique("number", keep="first", maintain_order=True),
    )
    for side, found in (("before", last), ("after", first)):
        commit = found.filter(IS_COMMIT).select(
            "number",
            pl.col("committed_offset").alias(f"{side}_offset"),
            pl.col("member_id").alias(f"{side}_member"),
            pl.col("epoch").alias(f"{side}_epoch"),
            pl.lit(value=True).alias(f"has_{side}"),
        )
        lost = lost.join(commit, "number", "left", maintain_order="left")
    return lost.with_columns(pl.col("has_before", "has_after").fill_null(value=False))


def _is_committed() -> pl.Expr:
    """Return whether the record was replicated to all in sync before the line was lost.

    What was not, no client was told of: a clean election may have cut it off.
    """
    below = pl.col("committed_below")
    return below.is_null() | (pl.col("record_offset") < below)


def _remarks() -> list[pl.Expr]:
    return [
        pl.format(
            f"{CONSUMER_OFFSETS} was deleted and made again: that copy is of topic id {{}}",
            "other_topic",
        ),
        pl.format("on the lost line it is a {} group", "other_type"),
        pl.when(~_is_committed()).then(pl.lit(_UNANSWERED)),
        pl.col("lacks"),
    ]


class _Became(NamedTuple):
    """What an offset became, what that cost (null where it cannot be told), and what says so."""

    offset: pl.Expr
    cost: pl.Expr
    why: pl.Expr


def _became() -> _Became:
    ask = pl.format("--prefer-copy {}", "copy")
    only_there = pl.format("only copy {} has it ({})", "copy", ask)
    had = _BASE.cast(pl.String).fill_null("no offset")
    why = pl.format("{}; the surviving log had {}", only_there, had)
    then = pl.format("{}, and the next commit was {}", why, _FIRST)
    none, cost = pl.lit(None, pl.Int64), _WAS - _BASE
    was_deleted = pl.format(
        "it was deleted, which only copy {} has ({}): the offset came back", "copy", ask
    )
    is_gone = ~pl.col("has_before") & (pl.col("uncompacted_from") > pl.col("diverges_at"))
    gone = pl.format("{}; what was in force after the election is no longer in the log", only_there)
    followed = pl.format("{}, and what came next was lost, too", why)
    has_resumed = (_BASE.fill_null(0) <= _FIRST) & (_FIRST < _WAS)
    kept = pl.format("{}: the member kept its position", then)
    known_cost = pl.when(_is_other_member()).then(cost)
    cases = (
        (_WAS.is_null(), _Became(_BASE, none, was_deleted)),
        (is_gone, _Became(_FIRST, none, gone)),
        (pl.col("is_followed"), _Became(_BASE, none, followed)),
        (_FIRST.is_null() | _FIRST.eq_missing(_BASE), _Became(_BASE, cost, why)),
        (has_resumed, _Became(_FIRST, _WAS - _FIRST, then)),
        (_is_same_member(), _Became(_BASE, pl.lit(0, pl.Int64), kept)),
        (pl.lit(value=True), _Became(_BASE, known_cost, then)),
    )
    offset, spent, reason = (
        pl.coalesce(
            pl.when(_is_first_case([case for case, _ in cases], number)).then(each[part])
            for number, (_, each) in enumerate(cases)
        )
        for part in range(len(_Became._fields))
    )
    return _Became(offset, spent, reason)


def _is_first_case(cases: list[pl.Expr], number: int) -> pl.Expr:
    """Return whether a case holds and none before it."""
    return pl.all_horizontal(
        *(~each.fill_null(value=False) for each in cases[:number]),
        cases[number].fill_null(value=False),
    )


def _is_same_member() -> pl.Expr:
    """Return whether one member owned the partition all along, and read no committed offset."""
    return (pl.col("before_member") == pl.col("after_member")) & pl.col("before_epoch").eq_missing(
        pl.col("after_epoch")
    )


def _is_other_member() -> pl.Expr:
    """Return whether another member has the partition, which began where the group stood."""
    return pl.col("before_member") != pl.col("after_member")


# Offsets that no client reaches since their group is looked for in another internal partition.

_EVERYWHERE: Final = pc.field("offset") >= 0
OUT_OF_REACH: Final = pl.Schema(
    {
        **LAST,
        "coordinator_partition": pl.Int32(),
        "partitions": pl.Int32(),
        "since": VERDICTS["at"],
        "not_before": VERDICTS["not_before"],
        "is_newest": pl.Boolean(),
        "next_offset": pl.Int64(),
    }
)
"""What was in force in partitions nobody asks any more (`LAST`): in which, and by which number of
partitions clients went since when, after `not_before`; then what was committed first where they
went, unless the era `is_newest`: the history has that."""
_ENDED: Final = pl.Schema({**LAST, "coordinator_partition": pl.Int32(), "first_offset": pl.Int64()})


def left_behind(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return what was in force in partitions nobody asks any more: `OUT_OF_REACH`.

    What the coordinator of such a partition does later, as to expire what it still has in memory,
    changes nothing. A log that lies where no number of partitions sent clients was never asked.
    """
    homes = homes_in(state.manifest).get(CONSUMER_OFFSETS)
    found = [OUT_OF_REACH.to_frame()]
    if homes is None:
        return found[0]
    partitions, since = homes.partitions, homes.since
    firsts: pl.DataFrame | None = None
    for era in homes.before:
        if since is None:
            break
        lasts = pl.concat(
            [
                _ENDED.to_frame(),
                *(
                    _in_force(state, partition, era.partitions, homes, since)
                    for partition in homes.misplaced
                ),
            ]
        )
        known = _ENDED.to_frame() if firsts is None else firsts
        next_offsets = known.select(*PLACE, pl.col("first_offset").alias("next_offset"))
        told = lasts.filter(pl.col("committed_offset").is_not_null())
        told = told.join(next_offsets, PLACE, "left", maintain_order="left").with_columns(
            partitions=pl.lit(partitions),
            since=pl.lit(since),
            not_before=pl.lit(era.last),
            is_newest=pl.lit(firsts is None),
        )
        found.append(told.select(pl.col(name).cast(kind) for name, kind in OUT_OF_REACH.items()))
        firsts = pl.concat([known, lasts]).unique(PLACE, keep="last")
        partitions, since = era.partitions, era.first
    return pl.concat(found)


def offsets_out_of_reach(behind: pl.DataFrame, history: OffsetHistory) -> pl.DataFrame:
    """Return a verdict for each offset that was in force in a partition nobody asks any more.

    Args:
        behind: `OUT_OF_REACH`.
        history: Of the partitions where clients look.
    """
    if behind.is_empty():
        return VERDICTS.to_frame()
    here = history.first_changes.select(*PLACE, pl.col("committed_offset").alias("here"))
    rows = behind.join(here, PLACE, "left", maintain_order="left")
    rows = rows.with_columns(
        pl.when("is_newest").then("here").otherwise("next_offset").alias("next_offset")
    )
    was, first = pl.col("committed_offset"), pl.col("next_offset")
    reasons = (
        pl.format(
            f"brokers that were started since go by {{}} partitions of {CONSUMER_OFFSETS}: none "
            "looks for the group in partition {} any more",
            "partitions",
            "coordinator_partition",
        ),
        pl.format("then {} was committed", first),
    )
    return verdicts_on(
        rows,
        LOST_BY_GROWTH,
        "out_of_reach",
        at=pl.col("since"),
        not_before=pl.col("not_before"),
        was=was,
        committed_at=pl.col("timestamp"),
        cost=pl.when(first < was).then(was - first),
        confidence=HIGH,
        record=record_at("record_offset"),
        reason=pl.concat_str(*reasons, separator="; ", ignore_nulls=True),
    )


def looked_for_elsewhere(
    state: ReplayedWorkspace, groups: pl.DataFrame, until: datetime
) -> pl.DataFrame:
    """Return why the history of groups up to an instant is not that of the partition they are in.

    Args:
        state: A replayed workspace.
        groups: Has `group_id`.
        until: The last instant asked about, within what was replayed.

    Returns:
        `group_id` and `why`, of those groups of which that is so.
    """
    group = pl.col("group_id")
    homes = homes_in(state.manifest).get(CONSUMER_OFFSETS)
    if homes is None or homes.since is None or until >= homes.since:
        return pl.DataFrame(schema={"group_id": pl.String, "why": pl.String})
    why = pl.format(
        f"until {iso_time(homes.since)} clients looked for {{}} in another partition of "
        f"{CONSUMER_OFFSETS}: ask with --as-of {iso_time(until)}",
        group,
    ).alias("why")
    here = internal_partition(group, homes.partitions)
    was_elsewhere = pl.any_horizontal(
        pl.lit(value=False),
        *(internal_partition(group, each.partitions) != here for each in homes.before),
    )
    return groups.filter(was_elsewhere).select(group, why)


def _in_force(
    state: ReplayedWorkspace, partition: int, number: int, homes: TopicHomes, until: datetime
) -> pl.DataFrame:
    """Return what was in force at the end of an era in one of its partitions: `_ENDED`."""
    line = {"topic": CONSUMER_OFFSETS, "partition": partition}
    commits = commits_in(state, line, DECODED, _EVERYWHERE)
    group, newer = pl.col("group_id"), [homes.partitions]
    newer += [each.partitions for each in homes.before if each.partitions > number]
    is_of_era = internal_partition(group, number) == partition
    for each in newer:
        is_of_era &= internal_partition(group, each) != partition
    is_in_time = pl.col("committed_at").is_null() | (pl.col("committed_at") < until)
    ended = ended_commits(
        commits.filter(is_of_era & is_in_time),
        markers_in(state, line, DECODED, _EVERYWHERE).filter(
            pl.col("end_at").is_null() | (pl.col("end_at") < until)
        ),
        replay_rules(state.release),
    )
    written = ended.filter(~pl.col("is_tombstone")).sort("record_offset")
    firsts = written.unique(PLACE, keep="first", maintain_order=True)
    firsts = firsts.select(*PLACE, pl.col("committed_offset").alias("first_offset"))
    rows = last_on_line(ended, 0).join(firsts, PLACE, "left", maintain_order="left")
    rows = rows.with_columns(pl.lit(partition, pl.Int32).alias("coordinator_partition"))
    return rows.select(_ENDED.names())
