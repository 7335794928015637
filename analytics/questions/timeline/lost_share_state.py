"""Start offsets and delivery state of share groups that went with a line of `__share_group_state`.

What a share group had dealt with before an unclean election of the partition that holds its state
is delivered again. Both lines are folded as the share coordinator does; what is equal on both is no
loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.timeline.words import HIGH, LOST, LOW, Verdict, verdict_row
from analytics.replay.share.share_fold import fold
from analytics.replay.share.share_records import RECORDS, SNAPSHOT, TOMBSTONE, UPDATE
from schemas import SHARE_GROUP_STATE

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
