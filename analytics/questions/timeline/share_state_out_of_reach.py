"""State of share groups that nobody reads since it is looked for in another partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import names_wanted
from analytics.engine.key_places import homes_in
from analytics.questions.timeline.lost_commits import records_of_line
from analytics.questions.timeline.lost_share_state import COLUMNS, state_records
from analytics.questions.timeline.words import HIGH, LOST_BY_GROWTH, Verdict, verdict_row
from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.log.internal_partitions import internal_partition, share_key
from analytics.replay.share.share_fold import fold
from analytics.workspace import DECODED
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from analytics.replay.log.topic_homes import Era, TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_KEY = ("group_id", "topic_id", "partition")
_TABLES = ("share_snapshot", "share_update")


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
            records = _records(state, number, pc.field("timestamp") < pa.scalar(since))
            records = _wanted(records, state, topics)
            yield from out_of_reach_in(records, number, era, homes, since, topics)
        if era.first is None:
            return
        since = era.first


def _records(state: ReplayedWorkspace, number: int, where: pc.Expression) -> pa.Table:
    line = {"topic": SHARE_GROUP_STATE, "partition": number}
    return state_records(
        *(records_of_line(state, line, f"{DECODED}/{name}", COLUMNS, where) for name in _TABLES)
    )


def _wanted(records: pa.Table, state: ReplayedWorkspace, topics: Mapping[str, str]) -> pa.Table:
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
