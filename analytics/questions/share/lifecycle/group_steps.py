"""In which order the records of share groups themselves were written and removed.

To make a group its metadata and its first member are written, then its first partition record, all
in one batch in what shipped; to remove one the tombstone of the partition record comes before that
of the group's metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.share.lifecycle.state_acts import StepRecords

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

NONE: Final = -1
GROUP, MEMBER, PICTURE = range(3)
CREATE_GROUP, DELETE_GROUP = "create_group", "delete_group"
IN_ORDER, OUT_OF_ORDER, CANNOT_TELL = "in_order", "out_of_order", "cannot_tell"
NO_METADATA = "the partition record was written before any record of the group itself"
NO_MEMBER = "the partition record was written before any record of a member"
PICTURE_LEFT = "the group was removed before its partition record was"
COMPACTED = "compaction, or a loss, may have taken records of that time"


_RECORDS: Final = pa.schema(
    [
        ("group_id", pa.string()),
        *((name, pa.int64()) for name in ("partition", "offset", "at")),
        ("gone", pa.bool_()),
        ("kind", pa.int64()),
    ]
)


@dataclass(frozen=True)
class _Events:
    """Records of groups in order of group and offset, of three kinds.

    Attributes:
        groups: By number of a group its id.
        group: Of each record its group's number.
        partition: Its partition of `__consumer_offsets`.
        offset: Its offset there.
        at: When it was written, in epoch milliseconds; `NONE` where it has no time.
        kind: GROUP, MEMBER or PICTURE (of partitions).
        gone: Whether it is a tombstone.
    """

    groups: pa.Array
    group: Numbers
    partition: Numbers
    offset: Numbers
    at: Numbers
    kind: Numbers
    gone: Truths

    def last(self, kind: int, *, gone: bool) -> Numbers:
        """Return the place of the last such record of the group before each; `NONE` for none."""
        chosen = (self.kind == kind) & (self.gone == gone)
        places = np.arange(chosen.size)
        seen = np.maximum.accumulate(np.where(chosen, places, NONE)) if chosen.size else places
        before = np.concatenate([[NONE], seen[:-1]])[: chosen.size]
        return np.where((before >= 0) & (self.group[before] == self.group), before, NONE)


def group_steps(records: StepRecords) -> dict[str, object]:
    """Return the columns of `share_steps` for groups: how each was made, and how removed."""
    events = _events(records)
    since, born = records.since(events.partition), records.born(events.partition)
    found = [_made(events, since, born), _removed(events, since)]
    begin, end, words, why, acts = (
        np.concatenate([part[place] for part in found]) for place in range(5)
    )
    nothing = pa.nulls(begin.size, pa.string())
    return {
        "group_id": events.groups.take(pa.array(events.group[begin])),
        "topic_id": nothing,
        "topic": nothing,
        "partition": pa.nulls(begin.size, pa.int32()),
        "act": pa.array(acts.tolist(), pa.string()),
        "began_at": events.at[begin],
        "state_at": np.full(begin.size, NONE),
        "ended_at": np.where(end >= 0, events.at[end], NONE),
        "verdict": words,
        "reason": why,
        "coordinator_partition": events.partition[begin],
        "began_offset": events.offset[begin],
        "ended_offset": np.where(end >= 0, events.offset[end], NONE),
    }


def _events(records: StepRecords) -> _Events:
    pictures = records.pictures
    parts = [_columns(records.groups, GROUP), _columns(records.members, MEMBER)]
    parts.append(
        pa.table(
            {
                "group_id": pictures.group_ids.take(pa.array(pictures.group)).cast(pa.string()),
                "partition": pictures.partition,
                "offset": pictures.offset,
                "at": pictures.at,
                "gone": pictures.is_tombstone,
                "kind": np.full(pictures.group.size, PICTURE),
            }
        )
    )
    rows = pa.concat_tables([each.select(_RECORDS.names).cast(_RECORDS) for each in parts])
    rows = rows.combine_chunks()
    ids = rows["group_id"].combine_chunks().dictionary_encode()
    group = ids.indices.to_numpy().astype(np.int64)
    order = np.lexsort((rows["offset"].to_numpy(), rows["partition"].to_numpy(), group))
    rows, group = rows.take(pa.array(order)), group[order]
    return _Events(
        groups=ids.dictionary,
        group=group,
        gone=rows["gone"].to_numpy(),
        **{name: rows[name].to_numpy() for name in ("partition", "offset", "at", "kind")},
    )


def _columns(records: pa.Table, kind: int) -> pa.Table:
    if not records.num_rows:
        return _RECORDS.empty_table()
    at = pc.fill_null(records["timestamp"].cast(pa.int64()), NONE).to_numpy()
    return pa.table(
        {
            "group_id": pc.struct_field(records["key"].combine_chunks(), "group_id"),
            "partition": records["partition"].to_numpy().astype(np.int64),
            "offset": records["offset"].to_numpy().astype(np.int64),
            "at": np.where(at == NONE, NONE, at // 1000),
            "gone": records["is_tombstone"],
            "kind": np.full(records.num_rows, kind),
        }
    )


def _made(events: _Events, since: Numbers, born: Numbers) -> tuple[NDArray[np.generic], ...]:
    """Return the first picture of each life of a group, and what had been written before it."""
    picture = events.last(PICTURE, gone=False)
    removed = events.last(GROUP, gone=True)
    ended = np.maximum(removed, events.last(PICTURE, gone=True))
    is_first = (events.kind == PICTURE) & ~events.gone & (picture <= ended)
    begin = np.flatnonzero(is_first)
    has_group = (events.last(GROUP, gone=False) > removed)[begin]
    has_member = (events.last(MEMBER, gone=False) > removed)[begin]
    before = removed[begin]
    is_whole = np.where(before < 0, since[begin] == 0, events.offset[before] >= since[begin])
    is_there = has_group & has_member
    # Where a picture before it may be gone the group may have been made earlier.
    is_seen = is_there & (is_whole | (events.offset[begin] >= born[begin]))
    words = np.where(is_seen, IN_ORDER, np.where(is_whole, OUT_OF_ORDER, CANNOT_TELL))
    missing = np.where(has_group, NO_MEMBER, NO_METADATA)
    why = _reasons(~is_seen, np.where(is_whole, missing, COMPACTED))
    nowhere = np.full(begin.size, NONE)
    return begin, nowhere, words, why, np.full(begin.size, CREATE_GROUP)


def _removed(events: _Events, since: Numbers) -> tuple[NDArray[np.generic], ...]:
    """Return the tombstones of groups, and whether that of the partition record came before."""
    end = np.flatnonzero((events.kind == GROUP) & events.gone)
    picture = events.last(PICTURE, gone=False)[end]
    tombstone = events.last(PICTURE, gone=True)[end]
    before = events.last(GROUP, gone=True)[end]
    is_left = picture > np.maximum(tombstone, before)
    begin = np.where(tombstone > before, tombstone, end)
    is_whole = events.offset[picture] >= since[end]
    words = np.where(is_left, np.where(is_whole, OUT_OF_ORDER, CANNOT_TELL), IN_ORDER)
    why = _reasons(is_left, np.where(is_whole, PICTURE_LEFT, COMPACTED))
    return begin, end, words, why, np.full(end.size, DELETE_GROUP)


def _reasons(wrong: Truths, words: NDArray[np.str_]) -> NDArray[np.object_]:
    found = np.full(wrong.size, None, object)
    found[wrong] = words[wrong]
    return found
