"""A log as it was before its cleaner had done: the segments that swap files take the place of.

A cleaner's finished output waits as ``.swap`` beside the segments that it replaces, which the
broker deletes when it starts again (``LogLoader``). What it loads is the swap file; what happened
is in the segments. They are believed only where they show the whole range: a segment that is gone
cannot be told from records that an earlier cleaning took.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.batches.header_columns import Headers
from analytics.dump.batches.walks import log_senses, walk_segment
from analytics.dump.files.model import NOTHING_KNOWN, Ignored
from analytics.dump.files.storage import base_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.dump.batches.walks import SegmentWalk
    from analytics.dump.files.model import PartitionCopy, Swap

NOT_YET_IN_PLACE = "a cleaner's output that had not replaced the segments beside it"


def before_swaps(partition: PartitionCopy) -> PartitionCopy:
    """Return a partition with the segments that swap files take the place of, in their place.

    Args:
        partition: With swap files.
    """
    swapped = {each.file.name for each in partition.swaps}
    replaced = [each for swap in partition.swaps for each in swap.replaces]
    names = {base_name(each.path) for each in replaced}
    logs = [*(each for each in partition.logs if each.name not in swapped), *replaced]
    kept = [each for each in partition.ignored if each.name not in names]
    ignored = [Ignored(base_name(each.file.path), NOT_YET_IN_PLACE) for each in partition.swaps]
    return replace(
        partition,
        segments=(*sorted(logs, key=lambda each: each.base_offset), *partition.checkpoints),
        ignored=(*kept, *ignored),
        first_dirty_offset=partition.noted_first_dirty,
        swaps=(),
    )


def why_not_before_swaps(partition: PartitionCopy, before: PartitionCopy) -> str | None:
    """Return why a partition's segments do not show what was before its swap files; else None.

    Every batch of them is read and its checksum compared.

    Args:
        partition: With swap files.
        before: The same as `before_swaps` returns it.
    """
    senses = {each.name: sense for each, sense in zip(before.logs, log_senses(before), strict=True)}
    begins = {one.name: other.base_offset for one, other in pairwise(before.logs)}
    for swap in partition.swaps:
        name, replaced = base_name(swap.file.path), swap.replaces
        if not replaced or replaced[0].base_offset != swap.file.base_offset:
            return f"no segment that begins where {name} begins lies beside it"
        walks = [walk_segment(each, senses[each.name], check_crc=True) for each in replaced]
        why = _why_not_whole(walks, begins) or _why_not_all_of(swap, walks)
        if why is not None:
            return why
    return None


def _why_not_whole(walks: Sequence[SegmentWalk], begins: dict[str, int]) -> str | None:
    for walk in walks:
        name, end = base_name(walk.segment.path), _end(walk)
        if walk.unreadable or walk.damages or walk.changed:
            return f"{name} cannot be read whole"
        if begins.get(walk.segment.name, end) != end:
            return (
                f"{name} ends at offset {end:,} and the next segment begins at "
                f"{begins[walk.segment.name]:,}: whether another one is missing cannot be told"
            )
    return None


def _why_not_all_of(swap: Swap, walks: Sequence[SegmentWalk]) -> str | None:
    """Return why segments are not what a swap file was made of: it has what they have not.

    A batch that was cleaned lies within the one that it was.
    """
    own = walk_segment(swap.file, NOTHING_KNOWN).headers
    source = Headers.concatenate([Headers.none(), *(walk.headers for walk in walks)])
    at = np.searchsorted(source.last_offset, own.last_offset)
    is_there = at < len(source)
    is_there[is_there] = source.base_offset[at[is_there]] <= own.base_offset[is_there]
    if is_there.all():
        return None
    first, end = own.base_offset[~is_there][0], own.last_offset[~is_there][0] + 1
    name = base_name(swap.file.path)
    return f"{name} has a batch of offsets {first:,} to {end:,} that no segment beside it has"


def _end(walk: SegmentWalk) -> int:
    headers = walk.headers
    return int(headers.last_offset[-1]) + 1 if len(headers) else walk.segment.base_offset
