"""The table `share_steps`: in which order groups and the state of their partitions came and went.

KIP-932's table of operations: a group's metadata, member and partition record are written, then the
share coordinator stores a snapshot, then the group's partition record says that the state is there.
To remove state the partition record names it first; tombstones follow, then another partition
record. Of a whole group the tombstone of the partition record comes before that of the group.

State is made by a snapshot without ranges and without a leader (``initializeState``), the first of
a share partition with snapshot epoch 0; it is removed by a tombstone. Both are pruned with time.

The two topics are led by different brokers: what lies within `steps` of the rules of each other
counts as in order. What compaction or a loss may have taken is not held against anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import TIME, instant
from analytics.questions.share.group_pictures import (
    AFTER_ALL,
    DELETING,
    INITIALIZED,
    INITIALIZING,
    NONE,
    RECORD,
    THING,
    WHOLE_TOPIC,
    KnownLogs,
    Pictures,
    records_of,
)
from analytics.questions.share.share_log import HOME, KEY
from analytics.replay.share_fold import SNAPSHOT, TOMBSTONE

if TYPE_CHECKING:
    from analytics.questions.share.group_pictures import StepRecords
    from analytics.questions.share.share_log import ShareLog

OUT_OF_ORDER, CANNOT_TELL, UNDER_WAY, IN_ORDER = (
    "out_of_order",
    "cannot_tell",
    "under_way",
    "in_order",
)
VERDICTS: Final = (OUT_OF_ORDER, CANNOT_TELL, UNDER_WAY, IN_ORDER)
INITIALIZE, DELETE_STATE = "initialize", "delete_state"
CREATE_GROUP, DELETE_GROUP = "create_group", "delete_group"
SKIPPED = "the group says that the state is there, and never said before that it was about to be"
LATE_STATE = "the state was first stored after the group said that it was there"
LATE_TOMBSTONE = "the state was removed after the group said that it was gone"
CLOCK_WENT_BACK = "the clock of the group's coordinator went back between its records"
GIVEN_UP = "the group does not say that it was done"
NO_METADATA = "the partition record was written before any record of the group itself"
NO_MEMBER = "the partition record was written before any record of a member"
PICTURE_LEFT = "the group was removed before its partition record was"
COMPACTED = "compaction, or a loss, may have taken records of that time"

STEPS: Final = pl.Schema(
    {
        **dict.fromkeys(("group_id", "topic_id", "topic"), pl.String()),
        "partition": pl.Int32(),
        "act": pl.String(),
        **dict.fromkeys(("began_at", "state_at", "ended_at"), TIME),
        "took_ms": pl.Int64(),
        "verdict": pl.String(),
        "reason": pl.String(),
        HOME: pl.Int32(),
        "began_offset": pl.Int64(),
        "ended_offset": pl.Int64(),
    }
)
"""The columns of `share_steps` without marks."""


def share_steps(records: StepRecords, slack_ms: int) -> pl.DataFrame:
    """Return `STEPS`, what is out of order first.

    Args:
        records: What it is read off.
        slack_ms: Times of two topics that are no further apart are not in a wrong order.
    """
    pictures, evidence = Pictures.of(records.pictures), records.evidence
    found = [
        _initialized(pictures, records.log, evidence, slack_ms),
        _skipped(pictures, evidence),
        _deleted(pictures, records.log, evidence, slack_ms),
        *_of_groups(records, pictures.records, evidence),
    ]
    made = (_table(each) for each in found if each.height)
    return steps_in_order(pl.concat([STEPS.to_frame(), *made]))


def steps_in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of `share_steps`, what is out of order first."""
    rank = pl.col("verdict").replace_strict(
        {word: rank for rank, word in enumerate(VERDICTS)}, return_dtype=pl.Int32
    )
    order = [rank, HOME, "began_offset", "topic_id", "partition"]
    return rows.sort(order, nulls_last=True, maintain_order=True)


_BEGIN: Final = {"offset": "began_offset", "at": "begun", HOME: HOME}
_END: Final = {"offset": "ended_offset", "at": "ended"}


def _acts(pictures: Pictures, phase: str) -> pl.DataFrame:
    """Return the stretches of records in which groups name things in a phase.

    Returns:
        `act` (a number), `THING`, `topic`; `began` and `end`, the places of the first of those
        records and of the one after the last, null where there is none; `_BEGIN` and `_END`.
    """
    place, of_thing = pl.col("place"), list(THING)
    named = pictures.named[phase].sort(*of_thing, "place", maintain_order=True)
    # A record may name a thing twice.
    is_new = (place > place.shift(1).over(of_thing) + 1).fill_null(value=True)
    stretches = (
        named.with_columns(act=is_new.cum_sum().over(of_thing))
        .group_by(*of_thing, "act", maintain_order=True)
        .agg(pl.col("topic").first(), began=place.first(), last=place.last())
        .drop("act")
        .with_row_index("act")
    )
    acts = pictures.with_record(stretches, "last", {"after": "end"})
    return _with_ends(pictures, acts)


def _with_ends(pictures: Pictures, acts: pl.DataFrame) -> pl.DataFrame:
    """Add `_BEGIN` and `_END`; a time that a record does not have is `NONE`."""
    acts = pictures.with_record(acts, "began", _BEGIN)
    return pictures.with_record(acts, "end", _END)


def _initialized(
    pictures: Pictures, log: ShareLog, evidence: KnownLogs, slack_ms: int
) -> pl.DataFrame:
    acts = _acts(pictures, INITIALIZING)
    acts = acts.with_columns(is_done=pictures.names(acts, INITIALIZED, "end"))
    acts = _with_state_made(_with_times(acts, slack_ms), log)
    stored, is_done, is_over = pl.col("state_at"), pl.col("is_done"), pl.col("end").is_not_null()
    is_late = pl.col("is_late") & _is_whole(evidence)
    is_untold = is_done & stored.is_null() & ~is_late
    return acts.with_columns(
        act=pl.lit(INITIALIZE),
        verdict=pl.when(~is_over)
        .then(pl.lit(UNDER_WAY))
        .when(is_done & is_late)
        .then(pl.lit(OUT_OF_ORDER))
        .when(is_untold)
        .then(pl.lit(CANNOT_TELL))
        .otherwise(pl.lit(IN_ORDER)),
        reason=pl.when(is_over & ~is_done)
        .then(pl.lit(GIVEN_UP))
        .when(is_done & is_late)
        .then(pl.lit(LATE_STATE))
        .when(is_untold)
        .then(evidence.why_untold),
    )


def _deleted(pictures: Pictures, log: ShareLog, evidence: KnownLogs, slack_ms: int) -> pl.DataFrame:
    if pictures.named[DELETING].is_empty():
        return STEPS.to_frame()
    acts = _with_state_removed(_with_times(_acts(pictures, DELETING), slack_ms), log)
    is_late = pl.col("is_late") & _is_whole(evidence)
    is_untold = pl.col("state_at").is_null() & ~is_late
    is_over = pl.col("end").is_not_null()
    return acts.with_columns(
        act=pl.lit(DELETE_STATE),
        verdict=pl.when(~is_over)
        .then(pl.lit(UNDER_WAY))
        .when(is_late)
        .then(pl.lit(OUT_OF_ORDER))
        .when(is_untold)
        .then(pl.lit(CANNOT_TELL))
        .otherwise(pl.lit(IN_ORDER)),
        reason=pl.when(is_over & is_late)
        .then(pl.lit(LATE_TOMBSTONE))
        .when(is_over & is_untold)
        .then(evidence.why_untold),
    )


def _is_whole(evidence: KnownLogs) -> pl.Expr:
    """Return whether nothing after acts began can be missing, and times of two topics compare."""
    is_sure = evidence.is_state_whole and evidence.are_clocks_alike
    return (pl.col("began_offset") >= evidence.since) & pl.lit(is_sure)


def _skipped(pictures: Pictures, evidence: KnownLogs) -> pl.DataFrame:
    """Return what a group says has state that it did not say was about to get it."""
    acts = pictures.named[INITIALIZED].with_columns(began="place", end="place")
    acts = _with_ends(pictures, pictures.with_record(acts, "place", {"before": "before"}))
    before = {"offset": "offset_before", "is_tombstone": "was_removed"}
    acts = pictures.with_record(acts, "before", before)
    acts = acts.with_columns(
        is_announced=pictures.names(acts, INITIALIZED, "before")
        | pictures.names(acts, INITIALIZING, "before")
    )
    is_first = pl.col("before").is_null()
    # Where nothing is known of before, the log must be whole from its very beginning on.
    is_whole = (
        pl.when(is_first)
        .then(evidence.since == 0)
        .otherwise(pl.col("offset_before") >= evidence.since)
    )
    is_begin = is_first | pl.col("was_removed").fill_null(value=False)
    return acts.filter(is_whole & (is_begin | ~pl.col("is_announced"))).with_columns(
        act=pl.lit(INITIALIZE),
        state_at=pl.lit(None, pl.Int64),
        verdict=pl.lit(OUT_OF_ORDER),
        reason=pl.lit(SKIPPED),
    )


# When share coordinators made and removed the state that acts of groups are about.


def _with_times(acts: pl.DataFrame, slack_ms: int) -> pl.DataFrame:
    """Add between which times state is made or removed: later is too late, if acts end at all."""
    ended = pl.col("ended").fill_null(NONE)
    return acts.with_columns(
        earliest=pl.col("begun") - slack_ms,
        latest=pl.when(ended != NONE).then(ended + slack_ms).otherwise(AFTER_ALL),
    )


def _of_acts(acts: pl.DataFrame, log: ShareLog, records: pl.Expr) -> pl.DataFrame:
    """Return acts with the records of share state that may belong to them.

    They are of the same group and topic, and partition where one is meant.
    """
    is_topic = pl.col("partition") == WHOLE_TOPIC
    shares = log.shares.select("share", *KEY)
    named = acts.select("act", *THING, "earliest", "latest")
    times = ["act", "earliest", "latest", "share"]
    pairs = pl.concat(
        [
            named.filter(is_topic).join(shares, ["group_id", "topic_id"], "inner").select(times),
            named.filter(~is_topic).join(shares, KEY, "inner").select(times),
        ]
    )
    timed = log.records.filter(pl.col("at").is_not_null() & records)
    at = pl.col("at")
    return pairs.join(timed, "share", "inner").with_columns(
        fits=(at >= pl.col("earliest")) & (at <= pl.col("latest")), is_after=at > pl.col("latest")
    )


_IS_MADE: Final = (
    (pl.col("kind") == SNAPSHOT) & (pl.col("leader_epoch") == 0) & (pl.col("ranges") == 0)
)


def _with_state_made(acts: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Add `state_at`, when state was made, and `is_late`: only too late, and the first time."""
    made = _of_acts(acts, log, _IS_MADE)
    is_first = pl.col("is_first") & (pl.col("snapshot_epoch") == 0)
    times = _earliest(made, made.filter(pl.col("is_after") & is_first))
    return acts.join(times, "act", "left", maintain_order="left").with_columns(
        is_late=pl.col("late_at").is_not_null() & pl.col("state_at").is_null()
    )


def _with_state_removed(acts: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Add `state_at`, when state was removed, and `is_late`: only after the act."""
    removed = _of_acts(acts, log, pl.col("kind") == TOMBSTONE)
    times = _earliest(removed, removed.filter("is_after"))
    # A removal after state was made anew is another act's.
    anew = _of_acts(acts, log, _IS_MADE).filter("is_after")
    made = anew.group_by("act").agg(made_at=pl.col("at").min())
    late, made_at = pl.col("late_at"), pl.col("made_at")
    return (
        acts.join(times, "act", "left", maintain_order="left")
        .join(made, "act", "left", maintain_order="left")
        .with_columns(
            is_late=late.is_not_null()
            & pl.col("state_at").is_null()
            & (made_at > late).fill_null(value=True)
        )
    )


def _earliest(records: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return by `act` the times of the first record that fits, and of the first one after.

    What belongs to one act is not late for another.

    Returns:
        `act`, `state_at` and `late_at`.
    """
    fitting = records.filter("fits")
    others = after.join(fitting.select("record"), "record", "anti")
    first = fitting.group_by("act").agg(state_at=pl.col("at").min())
    late = others.group_by("act").agg(late_at=pl.col("at").min())
    return first.join(late, "act", "full", coalesce=True)


# In which order the records of share groups themselves were written and removed.
#
# To make a group its metadata and its first member are written, then its first partition record,
# all in one batch in what shipped; to remove one the tombstone of the partition record comes before
# that of the group's metadata.

GROUP, MEMBER, PICTURE = range(3)


def _of_groups(
    records: StepRecords, pictures: pl.DataFrame, evidence: KnownLogs
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return how each group was made, and how removed."""
    parts = (records_of(records.groups), records_of(records.members), pictures.select(list(RECORD)))
    events = (
        pl.concat(rows.with_columns(kind=pl.lit(kind)) for kind, rows in enumerate(parts))
        .sort("group_id", HOME, "offset", maintain_order=True)
        .with_row_index("place")
        .with_columns(pl.col("place").cast(pl.Int64), since=evidence.since, born=evidence.born)
    )
    return _first_pictures(events), _group_tombstones(events)


def _last(kind: int, *, tombstone: bool, column: str = "place") -> pl.Expr:
    """Return what the last such record of the group before each one has; `NONE` for none."""
    chosen = (pl.col("kind") == kind) & (pl.col("is_tombstone") == tombstone)
    return pl.when(chosen).then(column).forward_fill().shift(1).over("group_id").fill_null(NONE)


def _first_pictures(events: pl.DataFrame) -> pl.DataFrame:
    """Return the first picture of each life of a group, and what had been written before it."""
    removed = pl.col("removed")
    found = events.with_columns(
        picture=_last(PICTURE, tombstone=False),
        picture_gone=_last(PICTURE, tombstone=True),
        removed=_last(GROUP, tombstone=True),
        removed_offset=_last(GROUP, tombstone=True, column="offset"),
        group=_last(GROUP, tombstone=False),
        member=_last(MEMBER, tombstone=False),
    ).filter(
        (pl.col("kind") == PICTURE)
        & ~pl.col("is_tombstone")
        & (pl.col("picture") <= pl.max_horizontal("removed", "picture_gone"))
    )
    has_group, has_member = pl.col("group") > removed, pl.col("member") > removed
    since, offset = pl.col("since"), pl.col("offset")
    is_whole = pl.when(removed < 0).then(since == 0).otherwise(pl.col("removed_offset") >= since)
    # Where a picture before it may be gone the group may have been made earlier.
    is_seen = has_group & has_member & (is_whole | (offset >= pl.col("born")))
    missing = pl.when(has_group).then(pl.lit(NO_MEMBER)).otherwise(pl.lit(NO_METADATA))
    return _with_verdict(found, CREATE_GROUP, is_seen, is_whole, missing).with_columns(
        began_offset="offset",
        begun="at",
        ended_offset=pl.lit(None, pl.Int64),
        ended=pl.lit(None, pl.Int64),
    )


def _group_tombstones(events: pl.DataFrame) -> pl.DataFrame:
    """Return the tombstones of groups, and whether that of the partition record came before."""
    tombstone = pl.col("picture_gone")
    found = events.with_columns(
        picture=_last(PICTURE, tombstone=False),
        picture_offset=_last(PICTURE, tombstone=False, column="offset"),
        picture_gone=_last(PICTURE, tombstone=True),
        before=_last(GROUP, tombstone=True),
        **{
            f"{each}_gone": _last(PICTURE, tombstone=True, column=each)
            for each in ("offset", "at", HOME)
        },
    ).filter((pl.col("kind") == GROUP) & pl.col("is_tombstone"))
    is_left = pl.col("picture") > pl.max_horizontal("picture_gone", "before")
    is_whole = pl.col("picture_offset") >= pl.col("since")
    found = _with_verdict(found, DELETE_GROUP, ~is_left, is_whole, pl.lit(PICTURE_LEFT))
    is_first = tombstone > pl.col("before")

    def begun(name: str) -> pl.Expr:
        return pl.when(is_first).then(f"{name}_gone").otherwise(name)

    return found.with_columns(
        began_offset=begun("offset"),
        begun=begun("at"),
        ended_offset="offset",
        ended="at",
        **{HOME: begun(HOME)},
    )


def _with_verdict(
    events: pl.DataFrame, act: str, is_in_order: pl.Expr, is_whole: pl.Expr, wrong: pl.Expr
) -> pl.DataFrame:
    """Add what is said of an act of a group; where records may be gone nobody is accused."""
    is_wrong = ~is_in_order
    verdict = pl.when(is_whole).then(pl.lit(OUT_OF_ORDER)).otherwise(pl.lit(CANNOT_TELL))
    why = pl.when(is_whole).then(wrong).otherwise(pl.lit(COMPACTED))
    return events.with_columns(
        topic_id=pl.lit(None, pl.String),
        topic=pl.lit(None, pl.String),
        partition=pl.lit(None, pl.Int64),
        act=pl.lit(act),
        state_at=pl.lit(None, pl.Int64),
        verdict=pl.when(is_wrong).then(verdict).otherwise(pl.lit(IN_ORDER)),
        reason=pl.when(is_wrong).then(why),
    )


def _table(acts: pl.DataFrame) -> pl.DataFrame:
    """Return acts as `STEPS`: of each `begun`, `state_at` and `ended` in epoch milliseconds."""
    begun, ended = (pl.when(pl.col(name) != NONE).then(name) for name in ("begun", "ended"))
    # What was first is told by times: not where the coordinator's clock went back meanwhile.
    is_back = (ended < begun).fill_null(value=False)
    made = {
        **{name: pl.col(name) for name in STEPS},
        "topic": pl.coalesce("topic", "topic_id"),
        "partition": pl.when(pl.col("partition") != WHOLE_TOPIC).then("partition"),
        "began_at": instant(begun),
        "state_at": instant(pl.col("state_at")),
        "ended_at": instant(ended),
        "took_ms": pl.when(~is_back).then(ended - begun),
        "verdict": pl.when(is_back).then(pl.lit(CANNOT_TELL)).otherwise("verdict"),
        "reason": pl.when(is_back).then(pl.lit(CLOCK_WENT_BACK)).otherwise("reason"),
    }
    return acts.select(each.cast(STEPS[name]).alias(name) for name, each in made.items())
