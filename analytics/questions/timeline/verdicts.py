"""The verdicts on each offset of a group: everything that happened to it, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.gaps.gap import PASSED_OVER, words_expression
from analytics.questions.timeline.history import (
    TRANSACTION_COMMIT,
    OffsetHistory,
    happenings,
    joined,
)
from analytics.questions.timeline.offset_losses import (
    OUT_OF_REACH,
    election_losses,
    offsets_out_of_reach,
)
from analytics.questions.timeline.topic_lives import TopicLives
from analytics.questions.timeline.words import (
    BELOW_LOG_START,
    CANNOT_TELL,
    NEVER_COMMITTED,
    NO_LOSS,
    PENDING,
    PLACE,
    VERDICTS,
    WITHOUT_GROUP,
    badness,
    record_at,
    verdicts_on,
)
from analytics.replay.offsets.offset_history import TOPIC_RECREATED
from analytics.tables.parted_table import Order
from schemas import CONSUMER_OFFSETS, table

if TYPE_CHECKING:
    from analytics.decode.unjudged_elections import Unjudged
    from analytics.questions.timeline.lost_commits import LostLine

_KEY: Final = table("offset_verdicts").key
COMMITTED: Final = (
    *(*PLACE, "committed_offset", "topic_id", "commit_timestamp", "coordinator_partition"),
    *("complete", "missing"),
)
"""What is read of `committed_offsets`."""
WAITING: Final = (
    *(*PLACE, "committed_offset", "commit_timestamp", "coordinator_partition", "record_offset"),
    *("producer_id", "complete", "missing"),
)
"""What is read of `pending_offsets`."""
LOG_STARTS: Final = pl.Schema(
    {"topic": pl.String(), "partition": pl.Int32(), "log_start": pl.Int64()}
)
"""Log start offsets of data partitions."""
GROUPS: Final = pl.Schema({"group_id": pl.String(), "home": pl.Int32(), "gap": pl.String()})
"""Groups, their partition of the offsets topic, and why their history has gaps; null: none."""
_GIVEN: Final = pl.Schema({name: VERDICTS[name] for name in PLACE})
_HOMES: Final = pl.Schema(
    {
        "home": pl.Int32(),
        "uncompacted_from": pl.Int64(),
        "not_whole": pl.String(),
        "unjudged_at": VERDICTS["at"],
        "unjudged_why": VERDICTS["reason"],
        "is_unjudged": pl.Boolean(),
    }
)


@dataclass(frozen=True)
class VerdictEvidence:
    """What verdicts are made of that is the same for all groups, all of it up to one instant.

    Attributes:
        lines: Lines of the offsets topic that did not survive.
        unjudged: By internal partition, the last election that may have lost commits unseen.
        uncompacted_from: By internal partition, the offset before which compaction took records.
        what_took: By internal partition, what became of the records before that offset, as in
            "was compacted".
        log_starts: `LOG_STARTS`.
        topics: What became of topics.
        out_of_reach: What lies where no client is sent any more, `OUT_OF_REACH`.
        until: The instant; None for the end of the dump.
    """

    lines: Sequence[LostLine] = ()
    unjudged: Mapping[int, Unjudged] = field(default_factory=dict)
    uncompacted_from: Mapping[int, int] = field(default_factory=dict)
    what_took: Mapping[int, str] = field(default_factory=dict)
    log_starts: pl.DataFrame = field(default_factory=LOG_STARTS.to_frame)
    topics: TopicLives = field(default_factory=TopicLives)
    out_of_reach: pl.DataFrame = field(default_factory=OUT_OF_REACH.to_frame)
    until: datetime | None = None

    def unjudged_election(self, home: int) -> Unjudged | None:
        """Return the last election of an internal partition that may have lost commits unseen."""
        found = self.unjudged.get(home)
        if found is None or found.at is None or self.until is None:
            return found
        return None if found.at > self.until else found

    @cached_property
    def homes(self) -> pl.DataFrame:
        """What is known of internal partitions, of those of which something is: a row for each.

        `uncompacted_from` with `not_whole`, which says so in words, `unjudged_at` and
        `unjudged_why` where `is_unjudged`.
        """
        rows = []
        for home in self.uncompacted_from.keys() | self.unjudged.keys():
            election, start = self.unjudged_election(home), self.uncompacted_from.get(home) or None
            what = self.what_took.get(home, "was compacted")
            words = f"history before offset {start} of {CONSUMER_OFFSETS}-{home} {what}"
            of_election = (None, None) if election is None else (election.at, election.reason)
            rows.append((home, start, start and words, *of_election, election is not None))
        return pl.DataFrame(rows, _HOMES, orient="row")


@dataclass(frozen=True)
class GroupRows:
    """What verdicts on some whole groups are made of, all of it up to one instant.

    Attributes:
        history: Changes of their offsets.
        committed: `COMMITTED`: what is in force at the instant.
        pending: `WAITING`, of the table `pending_offsets`.
        given: `PLACE` of partitions that members own or shall own.
        groups: `GROUPS`: those that are asked about.
    """

    history: OffsetHistory
    committed: pl.DataFrame
    pending: pl.DataFrame
    given: pl.DataFrame = field(default_factory=_GIVEN.to_frame)
    groups: pl.DataFrame = field(default_factory=GROUPS.to_frame)


def verdicts(evidence: VerdictEvidence, rows: GroupRows) -> pl.DataFrame:
    """Return a verdict for everything that happened to each offset; `in_order` sorts them.

    An offset to which nothing happened has one verdict: no loss found since a time, or never
    committed. Where a part of its history cannot be judged, that is a verdict too.

    Args:
        evidence: What is the same for all groups.
        rows: Of some whole groups; verdicts on lost lines and on `out_of_reach` are not of these
            alone.

    Returns:
        `VERDICTS`.
    """
    # What becomes of topics is told of commits whose place in the log is certain.
    is_certain = pl.col("complete").ne_missing(False)  # noqa: FBT003 - a value
    certain = _of_home(evidence.topics.with_found(rows.committed.filter(is_certain)), evidence)
    befell = pl.concat(
        [
            offsets_out_of_reach(evidence.out_of_reach, rows.history),
            happenings(rows.history),
            election_losses(evidence.lines, rows.history, evidence.uncompacted_from),
            *_in_force(evidence, rows.history, certain),
            _without_group(rows),
        ]
    )
    if evidence.until is not None:
        befell = befell.filter(pl.col("at").is_null() | (pl.col("at") <= evidence.until))
    groups = _of_home(rows.groups, evidence, "home")
    befell = _with_compacted(befell, groups)
    untold = _not_told(evidence, rows, befell, groups)
    waiting = _pending(rows.pending)
    spared = _no_losses(evidence, rows, certain.join(befell, PLACE, "anti"), groups)
    there = pl.concat([befell, untold, waiting, spared])
    never = _never_committed(rows, there, groups)
    return pl.concat([there, never, *_not_told_of_groups(groups)])


def _of_home(
    rows: pl.DataFrame, evidence: VerdictEvidence, home: str = "coordinator_partition"
) -> pl.DataFrame:
    """Add what is known of internal partitions."""
    return rows.join(
        evidence.homes, left_on=home, right_on="home", how="left", maintain_order="left"
    )


def _with_compacted(befell: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Say with the first that happened to an offset that compaction may have taken what was before.

    Where nothing happened the verdict itself says since when.
    """
    words = groups.select("group_id", "not_whole")
    if words["not_whole"].null_count() == words.height:
        return befell
    rows = befell.join(words, "group_id", "left", maintain_order="left").with_row_index("number")
    time = pl.col("at").dt.epoch("us").fill_null(0)
    firsts = rows.sort(time, "number").unique(PLACE, keep="first").select("number")
    is_first = pl.col("number").is_in(firsts["number"].implode())
    reason = pl.when(is_first).then(pl.coalesce("reason", "not_whole")).otherwise("reason")
    return rows.with_columns(reason.alias("reason")).select(VERDICTS.names())


def in_order(found: pl.DataFrame) -> pl.DataFrame:
    """Return verdicts of whole groups, the worst first.

    What cannot be told of one thing for several reasons is one verdict, which has them all.
    """
    told = _with_all_reasons(found.with_row_index("number")).sort("number")
    return worst_first(told.select(VERDICTS.names()))


def worst_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort verdicts, the worst first; those that are equal to that stay as they are."""
    order = (
        badness(pl.col("verdict")),
        pl.col("group_id"),
        # What cost nothing that is known comes before what did, and that by how much.
        -pl.col("cost").abs(),
        pl.col("topic").fill_null(""),
        pl.col("partition").fill_null(-1),
        pl.coalesce("at", "since").dt.epoch("us").fill_null(0),
    )
    return rows.sort(order, nulls_last=False, maintain_order=True)


WORST_FIRST: Final = Order(
    ("verdict", "group_id", "cost", "topic", "partition", "at", "since"), worst_first
)


def _with_all_reasons(found: pl.DataFrame) -> pl.DataFrame:
    """Put what cannot be told of one thing together, under the `number` of the first of these."""
    several = found.filter(pl.col("verdict") == CANNOT_TELL).filter(pl.len().over(_KEY) > 1)
    if several.is_empty():
        return found
    reasons = pl.col("reason").drop_nulls().unique(maintain_order=True).str.join("; ")
    others = [pl.col(name).first() for name in found.columns if name not in {*_KEY, "reason"}]
    told = several.group_by(_KEY, maintain_order=True).agg(*others, reasons)
    told = told.with_columns(pl.when(pl.col("reason") != "").then("reason").alias("reason"))
    rest = found.join(several, "number", "anti")
    return pl.concat([rest, told.select(found.columns)])


def _in_force(
    evidence: VerdictEvidence, history: OffsetHistory, certain: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what became of the records that offsets in force point at."""
    is_found = pl.col("topic_verdict").is_not_null()
    gone = certain.filter(is_found)
    of_topics = verdicts_on(
        gone,
        pl.col("topic_verdict"),
        "topic_life",
        was=pl.col("committed_offset"),
        **{name: pl.col(f"topic_{name}") for name in ("at", "confidence", "reason")},
    )
    there = certain.filter(~is_found).join(evidence.log_starts, ["topic", "partition"])
    start, offset = pl.col("log_start"), pl.col("committed_offset")
    below = _with_highest(there.filter(offset < start), history)
    what = pl.format("the log begins at {}: a consumer goes where auto.offset.reset says", start)
    had_read = pl.format(
        "{} had been committed before, so nothing unread was deleted",
        pl.when(pl.col("highest") >= start).then("highest"),
    )
    return of_topics, verdicts_on(
        below,
        BELOW_LOG_START,
        "log_start",
        was=offset,
        cost=offset - start,
        reason=pl.concat_str(what, had_read, separator="; ", ignore_nulls=True),
    )


def _with_highest(below: pl.DataFrame, history: OffsetHistory) -> pl.DataFrame:
    """Add `highest`: the highest offset that was committed at a place for the topic of an id.

    Commits that name no id count since the topic is last known to have been another one.
    """
    changes = history.rows.join(below.select(*PLACE, pl.col("topic_id").alias("asked")), PLACE)
    again = pl.when(pl.col("cause") == TOPIC_RECREATED).then("index").max().over("place")
    is_later = again.is_null() | (pl.col("index") >= again)
    is_same = (pl.col("topic_id") == pl.col("asked")).fill_null(value=True)
    highest = (
        changes.filter(is_later)
        .filter(is_same)
        .group_by(PLACE)
        .agg(pl.col("committed_offset").max().alias("highest"))
    )
    return below.join(highest, PLACE, "left", maintain_order="left")


def _without_group(rows: GroupRows) -> pl.DataFrame:
    """Return commits of transactions that outlived their group (since 4.0).

    No tombstone of a group takes what is pending. Its marker puts the offset in force, and makes no
    group: a fetch finds none, until a member or a commit makes it again (KAFKA-19163, -19164).
    """
    left = rows.history.in_force.filter(pl.col("event") == TRANSACTION_COMMIT)
    left = left.join(rows.committed, PLACE, "anti", maintain_order="left")
    offset = pl.col("committed_offset")
    return verdicts_on(
        left,
        WITHOUT_GROUP,
        "without_group",
        at=pl.col("effective_timestamp"),
        was=pl.col("previous_offset"),
        became=offset,
        record=record_at("effective_offset"),
        reason=pl.format(
            "the group was removed while {} was pending, then the transaction committed: {} is in "
            "force once a group of this name is there again",
            offset,
            offset,
        ),
    )


def _not_told(
    evidence: VerdictEvidence, rows: GroupRows, befell: pl.DataFrame, groups: pl.DataFrame
) -> pl.DataFrame:
    """Return what cannot be told of an offset that has a history."""
    gaps = verdicts_on(
        rows.history.incomplete,
        CANNOT_TELL,
        "gap",
        at=pl.col("effective_timestamp"),
        reason=pl.col("missing"),
    )
    doubtful = rows.committed.filter(pl.col("complete").eq_missing(False))  # noqa: FBT003 - a value
    return pl.concat(
        [
            gaps,
            _not_judged(evidence, rows, befell, groups),
            verdicts_on(doubtful, CANNOT_TELL, "doubtful_commit", reason=pl.col("missing")),
        ]
    )


def _not_judged(
    evidence: VerdictEvidence, rows: GroupRows, befell: pl.DataFrame, groups: pl.DataFrame
) -> pl.DataFrame:
    """Return which elections may have taken commits unseen, for each offset that has a history."""
    if not evidence.homes["is_unjudged"].any():
        return VERDICTS.to_frame()
    places = pl.concat([rows.history.places.select(PLACE), befell.select(PLACE)]).unique()
    here = rows.committed.select(*PLACE, "coordinator_partition")
    places = places.join(here, PLACE, "left").join(
        groups.select("group_id", "home"), "group_id", "left"
    )
    home = pl.coalesce("coordinator_partition", "home").alias("coordinator_partition")
    return verdicts_on(
        _of_home(places.with_columns(home), evidence).filter("is_unjudged"),
        CANNOT_TELL,
        "unjudged_election",
        at=pl.col("unjudged_at"),
        reason=pl.col("unjudged_why"),
    )


def _not_told_of_groups(groups: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return why offsets of a group may have been lost of which nothing is left."""
    return (
        verdicts_on(
            groups.filter("is_unjudged"),
            CANNOT_TELL,
            "unjudged_election",
            at=pl.col("unjudged_at"),
            reason=pl.col("unjudged_why"),
        ),
        verdicts_on(
            groups.filter(pl.col("gap").is_not_null()),
            CANNOT_TELL,
            "group_gap",
            reason=pl.col("gap"),
        ),
    )


def _no_losses(
    evidence: VerdictEvidence, rows: GroupRows, spared: pl.DataFrame, groups: pl.DataFrame
) -> pl.DataFrame:
    """Return since when nothing befell an offset, where nothing did."""
    spared = _with_whole_since(spared, rows.history)
    spared = _with_passed_over(evidence, rows, spared, groups)
    is_unjudged = pl.col("is_unjudged").fill_null(value=False)
    latest = pl.max_horizontal("whole_since", "unjudged_at")
    since = pl.when(is_unjudged).then(latest).otherwise("whole_since")
    is_known = pl.col("whole_since").is_not_null() & ~(
        is_unjudged & pl.col("unjudged_at").is_null()
    )
    spared = spared.filter(is_known).with_columns(since.alias("since"))
    untold = pl.coalesce("topic_reason", evidence.topics.not_known(pl.col("topic")))
    return verdicts_on(
        spared,
        NO_LOSS,
        "whole_history",
        since=pl.col("since"),
        reason=joined(pl.col("passed_over"), untold),
    )


def _with_whole_since(spared: pl.DataFrame, history: OffsetHistory) -> pl.DataFrame:
    """Add `whole_since`: the time of the first change from which on a history has no gap.

    Compaction leaves the last record of each key: from that on nothing is missing. What it left
    behind where nothing was compacted has all changes.
    """
    gaps = history.incomplete.select(
        *PLACE, pl.col("effective_timestamp").alias("gap_at"), pl.lit(value=True).alias("has_gap")
    )
    firsts = history.first_changes.select(*PLACE, pl.col("effective_timestamp").alias("first_at"))
    compacted = spared.filter(pl.col("uncompacted_from") > 0)
    left = history.rows.join(compacted.select(*PLACE, "uncompacted_from"), PLACE)
    left = left.filter(pl.col("effective_offset") < pl.col("uncompacted_from")).sort("index")
    left = left.unique("place", keep="last").select(
        *PLACE,
        pl.col("effective_timestamp").alias("left_at"),
        pl.lit(value=True).alias("has_left"),
    )
    for each in (gaps, firsts, left):
        spared = spared.join(each, PLACE, "left", maintain_order="left")
    begun = pl.when("has_left").then("left_at").otherwise("first_at")
    since = pl.when("has_gap").then("gap_at").otherwise(pl.coalesce(begun, "commit_timestamp"))
    return spared.with_columns(since.alias("whole_since"))


def _with_passed_over(
    evidence: VerdictEvidence, rows: GroupRows, spared: pl.DataFrame, groups: pl.DataFrame
) -> pl.DataFrame:
    """Add `passed_over`: what a group never committed of a partition it took on after others.

    Only where all of its commits are in the history, and the log still has what lies below.
    """
    if evidence.log_starts.is_empty():
        return spared.with_columns(pl.lit(None, pl.String).alias("passed_over"))
    is_whole = pl.col("home").is_not_null() & pl.col("not_whole").is_null()
    whole = groups.filter(is_whole & pl.col("gap").is_null())
    begun = rows.history.rows.group_by("group_id", "topic").agg(
        pl.col("epoch").min().alias("begun")
    )
    firsts = rows.history.first_changes.join(evidence.log_starts, ["topic", "partition"])
    firsts = firsts.join(whole, "group_id", "semi").join(rows.history.incomplete, PLACE, "anti")
    firsts = firsts.join(begun, ["group_id", "topic"])
    first, start = pl.col("committed_offset"), pl.col("log_start")
    firsts = firsts.filter((pl.col("epoch") > pl.col("begun")) & (first > start))
    words = words_expression(PASSED_OVER, first=start, last=first - 1)
    firsts = firsts.select(*PLACE, words.alias("passed_over"))
    return spared.join(firsts, PLACE, "left", maintain_order="left")


def _pending(rows: pl.DataFrame) -> pl.DataFrame:
    offset = pl.col("committed_offset")
    whose = pl.format(" of producer {}", "producer_id").fill_null("")
    is_untold = pl.col("complete").eq_missing(False)  # noqa: FBT003 - a value
    may_be = pl.format("whether the transaction{} has committed {}: {}", whose, offset, "missing")
    will_be = pl.format("{} is committed when the transaction{} is", offset, whose)
    return verdicts_on(
        rows,
        pl.when(is_untold).then(pl.lit(CANNOT_TELL)).otherwise(pl.lit(PENDING)),
        "pending",
        at=pl.col("commit_timestamp"),
        record=record_at("record_offset"),
        reason=pl.when(is_untold).then(may_be).otherwise(will_be),
    )


def _never_committed(rows: GroupRows, there: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    never = rows.given.unique().join(there, PLACE, "anti")
    never = never.join(rows.history.places, PLACE, "anti").sort(PLACE)
    never = never.join(groups, "group_id", "left", maintain_order="left")
    compacted = pl.format("{}, perhaps with a commit and its tombstone", "not_whole")
    is_of_election = pl.coalesce("gap", compacted).is_null()
    reason = pl.coalesce("gap", compacted, "unjudged_why")
    word = pl.when(reason.is_null()).then(pl.lit(NEVER_COMMITTED)).otherwise(pl.lit(CANNOT_TELL))
    at = pl.when(is_of_election).then("unjudged_at")
    return verdicts_on(never, word, "assignment", at=at, reason=reason)
