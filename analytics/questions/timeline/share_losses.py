"""State of share groups that was lost.

It was on lines that did not survive, or lies in partitions that nobody reads any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import polars_rows
from analytics.decode.selection import names_wanted
from analytics.dump.files.model import METADATA_LOG
from analytics.engine.key_places import homes_in
from analytics.questions.timeline.lost_commits import (
    Row,
    is_committed,
    lacks_of_lines,
    lost_of_topic,
    records_of_line,
)
from analytics.questions.timeline.words import (
    CANNOT_TELL,
    HIGH,
    LOST,
    LOST_BY_GROWTH,
    LOW,
    VERDICTS,
    Verdict,
    verdict_row,
    verdicts_on,
)
from analytics.replay.dump.choices import are_elections_clean, assumed_in
from analytics.replay.dump.followed_lines import parsed_time
from analytics.replay.log.ends_at import leading
from analytics.replay.log.topic_homes import internal_partition, share_key
from analytics.replay.share_fold import RECORDS, SNAPSHOT, TOMBSTONE, UPDATE, fold
from analytics.workspace import DECODED, DIVERGED
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replay.log.topic_homes import Era, TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

# Start offsets and delivery state of share groups that went with a line of `__share_group_state`.
#
# What a share group had dealt with before an unclean election of the partition that holds its
# state is delivered again. Both lines are folded as the share coordinator does; what is equal on
# both is no loss.

COLUMNS = ("partition", "is_tombstone", "key", "value")
"""Of the decoded tables `share_snapshot` and `share_update`, besides `offset`."""

Share = tuple[str, str, int]
"""Group, topic id and partition."""
State = tuple[int | None, list[dict[str, Any]]]
"""A start offset, and ranges of delivery state."""

_NOTHING: State = (None, [])


@dataclass(frozen=True)
class LostShareState:
    """A line of a partition of `__share_group_state` that did not survive.

    Attributes:
        copy: Whose log has it.
        partition: Of `__share_group_state`.
        shared: Records before the lines part, as `state_records` returns them.
        lost: Records of the line from there on.
        elected_at: When the election was, or no later than when; None where nothing says.
        elected_after: Where only bounds are known, the time before which it was not.
        is_committed: Whether its records are known to have been committed.
        lacks: Which records of either line the dump lacks, in a sentence; None where none.
    """

    copy: str
    partition: int
    shared: pa.Table
    lost: pa.Table
    elected_at: datetime | None
    elected_after: datetime | None = None
    is_committed: bool = True
    lacks: str | None = None


def state_records(snapshots: pa.Table | None, updates: pa.Table | None) -> pa.Table:
    """Return decoded records as `fold` takes them; None is no such table."""
    tables = [
        *([] if snapshots is None else [_as_records(snapshots, SNAPSHOT)]),
        *([] if updates is None else [_as_records(updates, UPDATE)]),
    ]
    return pa.concat_tables([RECORDS.empty_table(), *tables])


def _as_records(rows: pa.Table, kind: int) -> pa.Table:
    key, value = rows["key"].combine_chunks(), rows["value"].combine_chunks()
    named = {
        "coordinator_partition": rows["partition"],
        "record_offset": rows["offset"],
        "kind": pc.if_else(rows["is_tombstone"], TOMBSTONE, kind),
        "is_early_layout": pa.repeat(pa.scalar(value=False), rows.num_rows),
        **{name: pc.struct_field(key, name) for name in ("group_id", "topic_id", "partition")},
    }
    # Times do not tell what is lost.
    held = {each.name for each in value.type if not pa.types.is_timestamp(each.type)}
    told = held - named.keys()
    for field in RECORDS:
        if field.name in told:
            named[field.name] = pc.struct_field(value, field.name)
        elif field.name not in named:
            named[field.name] = pa.nulls(rows.num_rows, field.type)
    return pa.table({field.name: named[field.name] for field in RECORDS}).cast(RECORDS)


def share_state_losses(lines: Iterable[LostShareState], topics: Mapping[str, str]) -> list[Verdict]:
    """Return a verdict for each share partition whose state an election changed.

    `was` and `became` are start offsets, null where none was stored.

    Args:
        lines: That did not survive.
        topics: Names of topics by id.
    """
    return [verdict for line in lines for verdict in _of_line(line, topics)]


def _of_line(line: LostShareState, topics: Mapping[str, str]) -> Iterator[Verdict]:
    names = ("group_id", "topic_id", "partition")
    last: dict[Share, int] = {}
    columns = [line.lost[name].to_pylist() for name in (*names, "record_offset")]
    for group, topic_id, partition, offset in zip(*columns, strict=True):
        share = group, topic_id, partition
        last[share] = max(offset, last.get(share, offset))
    shared = line.shared.filter(pc.is_in(line.shared["group_id"], pc.unique(line.lost["group_id"])))
    before, after = _states(pa.concat_tables([shared, line.lost])), _states(shared)
    for share, offset in sorted(last.items()):
        was, became = before.get(share, _NOTHING), after.get(share, _NOTHING)
        if was != became:
            yield _verdict(line, share, offset, (was[0], became[0]), topics)


def _states(records: pa.Table) -> dict[Share, State]:
    return {
        (row["group_id"], row["topic_id"], row["partition"]): (row["start_offset"], row["batches"])
        for row in fold(records).to_pylist()
    }


def _verdict(
    line: LostShareState,
    share: Share,
    record: int,
    starts: tuple[int | None, int | None],
    topics: Mapping[str, str],
) -> Verdict:
    group, topic_id, partition = share
    was, became = starts
    told = None not in starts and was != became and not line.lacks
    what = (
        "the start offset stayed; what was dealt with behind it is lost and may be delivered again"
        if was == became
        else "the share group's start offset, with the delivery state behind it"
    )
    return verdict_row(
        (group, topics.get(topic_id, topic_id), partition),
        LOST,
        "lost_line",
        at=line.elected_at,
        not_before=line.elected_after,
        was=was,
        became=became,
        cost=was - became if told and was is not None and became is not None else None,
        confidence=HIGH if line.is_committed and not line.lacks else LOW,
        record=f"{SHARE_GROUP_STATE}-{line.partition}@{record}",
        reason="; ".join([f"{what} (copy {line.copy})", *([line.lacks] if line.lacks else [])]),
    )


# State of share groups that nobody reads since it is looked for in another partition.

_KEY = ("group_id", "topic_id", "partition")


def share_state_out_of_reach(
    state: ReplayedWorkspace, topics: Mapping[str, str]
) -> Iterator[Verdict]:
    """Yield a verdict for each share partition whose state lies where nobody looks any more.

    Those of the groups and topics that are asked about alone are made.

    A start offset is lost when the number of partitions that sent clients to it is over. The state
    that an earlier number left behind is out of reach since the next one began.

    Args:
        state: A replayed workspace.
        topics: Names of topics by id.
    """
    homes = homes_in(state.manifest).get(SHARE_GROUP_STATE)
    if homes is None or homes.since is None:
        return
    since = homes.since
    for era in homes.before:
        for number in homes.misplaced:
            records = _records_out_of_reach(state, number, pc.field("timestamp") < pa.scalar(since))
            records = _wanted_out_of_reach(records, state, topics)
            yield from out_of_reach_in(records, number, era, homes, since, topics)
        if era.first is None:
            return
        since = era.first


def _records_out_of_reach(state: ReplayedWorkspace, number: int, where: pc.Expression) -> pa.Table:
    line = {"topic": SHARE_GROUP_STATE, "partition": number}
    return state_records(
        *(records_of_line(state, line, f"{DECODED}/{name}", COLUMNS, where) for name in _TABLES)
    )


def _wanted_out_of_reach(
    records: pa.Table, state: ReplayedWorkspace, topics: Mapping[str, str]
) -> pa.Table:
    asked = state.tables.selection
    groups = records["group_id"].unique().to_pylist()
    groups = names_wanted(groups, asked.groups, asked.exclude_groups)
    ids = records["topic_id"].unique().to_pylist()
    ids = [each for each in ids if names_wanted([topics.get(each, each)], asked.topics)]
    return records.filter(
        pc.and_(
            pc.is_in(records["group_id"], pa.array(groups, pa.string())),
            pc.is_in(records["topic_id"], pa.array(ids, pa.string())),
        )
    )


def out_of_reach_in(
    records: pa.Table,
    number: int,
    era: Era,
    homes: TopicHomes,
    since: datetime,
    topics: Mapping[str, str],
) -> Iterator[Verdict]:
    """Yield a verdict for each share partition that was at home in a partition in an era alone.

    Args:
        records: Of the partition up to the end of the era, as `state_records` returns them.
        number: The partition.
        era: One that is over.
        homes: Of `__share_group_state`.
        since: When the next era began.
        topics: Names of topics by id.
    """
    keys = pl.DataFrame(pl.from_arrow(records.select(_KEY)))
    key = share_key(*(pl.col(name) for name in _KEY))
    newer = [each.partitions for each in homes.before if each.partitions > era.partitions]
    is_of_era = internal_partition(key, era.partitions) == number
    for each in (homes.partitions, *newer):
        is_of_era &= internal_partition(key, each) != number
    mask = keys.select(is_of_era.alias("mask")).to_series().to_arrow()
    columns = ["group_id", "topic_id", "partition", "start_offset", "record_offset"]
    lost = polars_rows(fold(records.filter(mask)).select(columns))
    reason = (
        f"brokers that were started since go by {homes.partitions} partitions of "
        f"{SHARE_GROUP_STATE}: none looks for the share partition's state in partition "
        f"{number} any more; what was dealt with may be delivered again"
    )
    common = {"at": since, "not_before": era.last, "confidence": HIGH, "reason": reason}
    places = lost.select(
        "group_id",
        pl.col("topic_id").replace(topics).alias("topic"),
        "partition",
        pl.col("start_offset").alias("was"),
        pl.format(f"{SHARE_GROUP_STATE}-{number}@{{}}", "record_offset").alias("record"),
    )
    for group, topic, partition, was, record in places.iter_rows():
        place = group, topic, partition
        yield verdict_row(place, LOST_BY_GROWTH, "out_of_reach", was=was, record=record, **common)


_TABLES = ("share_snapshot", "share_update")


def share_losses(state: ReplayedWorkspace, until: datetime | None) -> pl.DataFrame:
    """Return what elections took of the state of the share groups asked about, or may have taken.

    Args:
        state: A replayed workspace.
        until: The last instant asked about; None is that of the replay.
    """
    rows = state.tables.read("topics", ["topic", "topic_id"]).to_pylist()
    topics = {row["topic_id"]: row["topic"] for row in rows if row["topic_id"]}
    lines = [_line(state, row) for row in lost_of_topic(state, SHARE_GROUP_STATE)]
    lost = share_state_losses([each for each in lines if each.lost.num_rows], topics)
    lost += share_state_out_of_reach(state, topics)
    found = pl.concat([_wanted(state, pl.DataFrame(lost, VERDICTS, orient="row")), _untold(state)])
    if until is None:
        return found
    return found.filter(pl.col("at").is_null() | (pl.col("at") <= until))


def _wanted(state: ReplayedWorkspace, found: pl.DataFrame) -> pl.DataFrame:
    wanted = state.tables.selection
    groups, topics = (found[name].unique().to_list() for name in ("group_id", "topic"))
    return found.filter(
        pl.col("group_id").is_in(names_wanted(groups, wanted.groups, wanted.exclude_groups)),
        pl.col("topic").is_in(names_wanted(topics, wanted.topics)),
    )


def _line(state: ReplayedWorkspace, row: Row) -> LostShareState:
    start, own = row["diverges_at"], f"{DIVERGED}/{row['copy']}/{DECODED}"
    is_exact = row["election_shown_by"] == METADATA_LOG
    return LostShareState(
        copy=row["copy"],
        partition=row["partition"],
        shared=_records(state, row, DECODED, pc.field("offset") < start),
        lost=_records(state, row, own, pc.field("offset") >= start),
        elected_at=row["elected_at"],
        elected_after=None if is_exact else row["lost_to_timestamp"],
        is_committed=is_committed(state, row),
        lacks=lacks_of_lines(state, row),
    )


def _records(state: ReplayedWorkspace, row: Row, folder: str, where: pc.Expression) -> pa.Table:
    columns: Sequence[str] = COLUMNS
    return state_records(
        *(records_of_line(state, row, f"{folder}/{name}", columns, where) for name in _TABLES)
    )


def _untold(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return why an election may have taken state unseen, for each share partition it is about."""
    if are_elections_clean(assumed_in(state.manifest)):
        return VERDICTS.to_frame()
    elections = [
        (row["partition"], parsed_time(each["at"]), each["why"])
        for row in leading(state.manifest)
        if row["topic"] == SHARE_GROUP_STATE
        for each in (row.get("unjudged_elections") or ())[-1:]
    ]
    if not elections:
        return VERDICTS.to_frame()
    columns = ["group_id", "topic", "partition", "coordinator_partition"]
    shares = polars_rows(state.tables.read("share_partitions", columns))
    names = {"coordinator_partition": pl.Int32(), "at": VERDICTS["at"], "why": pl.String()}
    why = pl.DataFrame(elections, pl.Schema(names), orient="row")
    rows = shares.join(why, "coordinator_partition", maintain_order="left")
    return verdicts_on(
        rows, CANNOT_TELL, "unjudged_election", at=pl.col("at"), reason=pl.col("why")
    )
