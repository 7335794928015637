"""Everything that happened to groups and to their offsets, the losses first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow.compute as pc

from analytics.contracts import polars_rows
from analytics.decode.selection import is_name, names_wanted
from analytics.decode.unjudged_elections import Unjudged
from analytics.engine.part_runs import PartAnswer, PartAnswers
from analytics.errors import SettingRefusedError
from analytics.gaps.gap import gap
from analytics.gaps.group_selection import COLUMNS as UNREAD
from analytics.gaps.group_selection import (
    HOMES,
    GroupSelection,
    compacted_history,
    compacted_sentence,
    select_groups,
    with_unread,
)
from analytics.gaps.internal_topics import are_some_topics, elections_unread
from analytics.questions.question import Answer, Question
from analytics.questions.timeline.group_verdicts import (
    OtherLosses,
    frames_until,
    matched,
    verdicts_of_groups,
)
from analytics.questions.timeline.lost_commits import (
    coordinator_evidence,
    in_force_then,
    is_committed,
    lost_lines,
)
from analytics.questions.timeline.offset_losses import left_behind
from analytics.questions.timeline.share_losses import share_losses
from analytics.questions.timeline.topic_lives import METADATA_LOG, TopicLives
from analytics.questions.timeline.verdicts import LOG_STARTS, VerdictEvidence
from analytics.questions.timeline.words import (
    HIGH,
    LOST,
    LOW,
    OFFSET_VERDICTS,
    VERDICTS,
    verdicts_on,
)
from analytics.replay.dump.choices import BeforeEnd, are_elections_clean, assumed_in, iso_time
from analytics.replay.dump.times import first_time, last_time, resolved_time
from analytics.replay.log.ends_at import leading, what_took_history
from analytics.replay.log.log_times import disputed
from analytics.replayed.end_offsets import end_offsets_at
from analytics.replayed.group_rows import StoredGroups
from analytics.replayed.whole_groups import whole_group_parts
from analytics.tables.parted_table import Order, PartedTables
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Frames
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import PartitionEntry

# What happened to groups, event by event: in the order of time, of a history of any size.

GROUP_EVENTS: Final = "group_events"
AT_ONCE: Final = 600_000
"""So many events are sorted together, about; else those of each file."""
_BY_TIME: Final = (
    "at",
    "log",
    "coordinator_partition",
    "record_offset",
    "event",
    "subject",
    "group_id",
)


def in_time_order(events: pl.DataFrame) -> pl.DataFrame:
    """Sort events; those without a time come last, and those of one record stay as they are."""
    return events.sort(_BY_TIME, nulls_last=True, maintain_order=True)


def group_events(
    state: ReplayedWorkspace,
    since: datetime | None,
    until: datetime | None,
    missing: Sequence[str],
) -> PartAnswers:
    """Return the table `group_events` of the groups asked about, in the order of time.

    Args:
        state: A replayed workspace.
        since: Only events at or after this instant.
        until: Only events at or before this one.
        missing: Names and patterns that match no group that is there.

    Returns:
        The table, and of each part which of `missing` match a group that it has.
    """
    tables = state.tables
    bounds = []
    if since is not None:
        bounds.append(pc.field("at") >= since)
    if until is not None:
        bounds.append(pc.field("at") <= until)
    where = reduce(and_, bounds) if bounds else None
    columns = tables.schema(GROUP_EVENTS).names
    sources = {GROUP_EVENTS: StoredGroups(tables, GROUP_EVENTS, columns, where)}
    runner, orders = state.runner, {GROUP_EVENTS: Order(_BY_TIME, in_time_order)}
    with whole_group_parts(sources, AT_ONCE, runner.folder) as parts:
        return runner.run(partial(events_of_part, tuple(missing)), parts, orders)


def events_of_part(missing: Sequence[str], rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return events in the order of time."""
    events = in_time_order(rows[GROUP_EVENTS])
    return PartAnswer({GROUP_EVENTS: events}, matched(missing, events["group_id"]))


NOT_WHOLE: Final = "not_whole"
"""The figure that says which history compaction or deletion took; None where all of it is there."""


@dataclass(frozen=True)
class TimelineSettings:
    """What of a timeline is asked.

    Instants are a datetime, ISO 8601, epoch milliseconds, or a time before the end of the dump.

    Attributes:
        time_from: Only events at or after this instant.
        time_to: Only events at or before this one, and verdicts of the history up to it.
        end_offsets: A file that says where logs ended.
        with_events: Answer with `group_events`, too.
    """

    time_from: datetime | str | int | BeforeEnd | None = None
    time_to: datetime | str | int | BeforeEnd | None = None
    end_offsets: str | None = None
    with_events: bool = True


def timeline(state: ReplayedWorkspace, settings: TimelineSettings) -> Answer:
    """Return what happened to offsets, the worst first, and the events of the time asked about.

    Its figure is `NOT_WHOLE`.

    Raises:
        SettingRefusedError: The time asked about ends before it begins, or before the dump does.
        CannotTellError: A time is before the end of the dump, and no record has one.
        InputUnreadableError: `end_offsets` is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    since, until = (
        resolved_time(each, state.manifest) for each in (settings.time_from, settings.time_to)
    )
    warnings = _check_window(state, since, until)
    frames = {} if until is None else frames_until(state, until)
    known = _verdict_evidence(state, settings.end_offsets, until, frames)
    groups = _with_unjudged(select_groups(state, columns=HOMES), known)
    others = OtherLosses(_lost_groups(state, until), share_losses(state, until))
    happened = verdicts_of_groups(state, known, frames, others, groups.missing)
    tables = dict(happened.tables)
    # One that was deleted, or lost, has a timeline nevertheless.
    there = [each for part in happened.sums for each in part.matched_names]
    # Also where nobody reads them, events show whether what matches no group was once there.
    if settings.with_events or groups.missing:
        events = group_events(state, since, until, groups.missing)
        there += [each for part in events.sums for each in part]
        tables |= events.tables if settings.with_events else {}
    groups = replace(
        groups, missing=tuple(each for each in groups.missing if each not in set(there))
    )
    is_unread = pc.is_valid(pc.field("unread"))
    groups = with_unread(groups, state.tables.read("members", UNREAD, is_unread))
    unread = elections_unread(state.manifest)
    compacted = compacted_history(state)
    return Answer(
        PartedTables(tables),
        groups,
        doubts=() if unread is None else (unread,),
        warnings=warnings,
        summary={"compacted": compacted},
        figures={NOT_WHOLE: compacted_sentence(compacted)},
        # Events are of the replay; verdicts of an earlier time are not those of its instant.
        stored_tables=PartedTables({} if until is not None else happened.tables),
        rows_cannot_tell=any(each.cannot_tell for each in happened.sums),
    )


def _with_unjudged(asked: GroupSelection, known: VerdictEvidence) -> GroupSelection:
    """Say of a pattern that matches nothing that what it would match may have been lost."""
    unjudged = [each for home in known.unjudged if (each := known.unjudged_election(home))]
    patterns = [each for each in asked.missing if not is_name(each)]
    if not unjudged or not patterns:
        return asked
    why = gap("election_unjudged", topic=CONSUMER_OFFSETS, why=unjudged[0].reason)
    return replace(
        asked,
        missing=tuple(each for each in asked.missing if is_name(each)),
        gaps=(*asked.gaps, *(gap("group_may_match", pattern=each, why=why) for each in patterns)),
    )


def _check_window(
    state: ReplayedWorkspace, since: datetime | None, until: datetime | None
) -> tuple[str, ...]:
    """Return what to know of a time that lies beyond the dump; refuse one that holds nothing of it.

    Raises:
        SettingRefusedError: It ends before it begins, or before the dump does.
    """
    if since is not None and until is not None and since > until:
        raise SettingRefusedError(f"--from {iso_time(since)} is after --to {iso_time(until)}")
    dump = state.manifest_of_history
    first, last = first_time(dump), last_time(dump)
    if first is None or last is None:
        return ()
    holds = f"the records of this dump are from {iso_time(first)} to {iso_time(last)}"
    if until is not None and until < first:
        raise SettingRefusedError(f"--to {iso_time(until)} is before the dump begins: {holds}")
    if since is None or since <= last:
        return ()
    sentence = (
        f"--from {iso_time(since)} is after the dump ends: {holds}; there are no events then, "
        f"and the verdicts are of the whole history"
    )
    return (sentence,)


def _verdict_evidence(
    state: ReplayedWorkspace, end_offsets: str | None, until: datetime | None, frames: Frames
) -> VerdictEvidence:
    """Read what verdicts are made of that is the same for all groups.

    Args:
        state: A replayed workspace.
        end_offsets: A file that says where logs ended.
        until: The last instant asked about; None is that of the replay.
        frames: Where the logs whose times go back are cut at that instant.
    """
    evidence = coordinator_evidence(state, until, None if until is None else frames)
    not_whole = _not_whole(state)
    are_clean = are_elections_clean(assumed_in(state.manifest))
    unjudged = {} if are_clean else {number: each.unjudged() for number, each in evidence.items()}
    unjudged |= {} if until is None else in_force_then(state, until)
    unjudged |= {
        number: Unjudged(None, each.why(CONSUMER_OFFSETS, number))
        for number, each in disputed(frames, CONSUMER_OFFSETS).items()
    }
    return VerdictEvidence(
        lines=lost_lines(state, evidence),
        unjudged={number: each for number, each in unjudged.items() if each is not None},
        uncompacted_from={
            each["partition"]: start for each in not_whole if (start := each["complete_from"])
        },
        what_took={each["partition"]: what_took_history(each) for each in not_whole},
        log_starts=_log_starts(state, end_offsets, until),
        topics=_topics(state, until),
        out_of_reach=left_behind(state),
        until=until,
    )


def _log_starts(
    state: ReplayedWorkspace, end_offsets: str | None, until: datetime | None
) -> pl.DataFrame:
    """Return `LOG_STARTS`; what the directories say, they say of the end of the dump."""
    if until is not None:
        return LOG_STARTS.to_frame()
    ends = polars_rows(end_offsets_at(state, end_offsets))
    starts = ends.with_columns(pl.col("log_start_offset").alias("log_start"))
    return starts.filter(pl.col("log_start").is_not_null()).select(
        pl.col(name).cast(kind) for name, kind in LOG_STARTS.items()
    )


def _not_whole(state: ReplayedWorkspace) -> list[PartitionEntry]:
    """Return the partitions of the offsets topic of which earlier records were taken."""
    return [
        each
        for each in leading(state.manifest_of_history)
        if each["topic"] == CONSUMER_OFFSETS and each.get("complete_from")
    ]


def _topics(state: ReplayedWorkspace, until: datetime | None) -> TopicLives:
    """Return what is known of topics; with commits that name ids only where ids need an order."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in state.tables.read("topics").to_pylist():
        rows.setdefault(row["topic"], []).append(row)
    is_end = state.is_end and until is None
    several = [
        topic
        for topic, lives in rows.items()
        if len(lives) > 1 and not any(each["source"] == METADATA_LOG for each in lives)
    ]
    if not several:
        return TopicLives(rows, is_end)
    # Of all groups: each tells of the topic.
    named = (
        StoredTables(state.tables.workspace)
        .read(
            "offset_history",
            ["topic", "topic_id", "commit_timestamp"],
            pc.field("topic").isin(several) & pc.field("topic_id").is_valid(),
        )
        .group_by(["topic", "topic_id"])
        .aggregate([("commit_timestamp", "min_max")])
    )
    spans = {
        (row["topic"], row["topic_id"]): tuple(row["commit_timestamp_min_max"].values())
        for row in named.to_pylist()
        if row["commit_timestamp_min_max"]["min"] is not None
    }
    return TopicLives(rows, is_end, spans)


def _lost_groups(state: ReplayedWorkspace, until: datetime | None) -> pl.DataFrame:
    """Return a verdict for each group that only a lost line has.

    Several of its partitions may have diverged: the last election is named.
    """
    wanted = state.tables.selection
    are_some = are_some_topics(state.manifest, wanted)
    offsets = "; which offsets of other topics it had cannot be told" if are_some else ""
    found = [VERDICTS.to_frame()]
    for each in state.tables.read("divergences").sort_by("elected_at").to_pylist():
        at = each["elected_at"]
        if at is not None and until is not None and at > until:
            continue
        is_exact = each["election_shown_by"] == METADATA_LOG
        dump = f"the dump with --prefer-copy {each['copy']}"
        names = names_wanted(each["groups_only_there"], wanted.groups, wanted.exclude_groups)
        found.append(
            verdicts_on(
                pl.DataFrame({"group_id": pl.Series(names, dtype=pl.String)}),
                LOST,
                "lost_line",
                at=at,
                not_before=None if is_exact else each["lost_to_timestamp"],
                confidence=HIGH if is_committed(state, each) else LOW,
                reason=f"only copy {each['copy']} has the group ({dump}){offsets}",
            )
        )
    return pl.concat(found).unique("group_id", keep="last", maintain_order=True)


TIMELINE: Final = Question(
    name="timeline",
    needs=(
        *("groups", "members", "topics", "partition_leaders", "assignments"),
        *("committed_offsets", "pending_offsets", "coordinator_epochs"),
        *("offset_history", "group_events", "divergences", "load_faults"),
        # What elections may have taken of share groups is known of each of their partitions.
        "share_partitions",
    ),
    tables=(OFFSET_VERDICTS, GROUP_EVENTS),
    settings=TimelineSettings,
    answer=timeline,
    # An audit reads its verdicts, and events where they are.
    is_audited=False,
)
