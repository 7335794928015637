"""Which logs count where a cleaner left swap files: those, or the segments they take the place of.

A broker that starts again loads what a cleaner left in a swap file: so state at the end of the
dump, faults of loading and use of logs are of that. The segments that it takes the place of lie
beside it, and hold what happened: so history is of them, and all that is asked of an earlier
instant, when the broker had not cleaned them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

import pyarrow.compute as pc

from analytics.workspace import BEFORE_SWAPS

Row = Mapping[str, Any]

_READ: Final = "read_before_swaps"
"""In a manifest as `of_history` returns it, and never in a file: of which partitions it is."""


def of_history(manifest: Row) -> Row:
    """Return a manifest that says of partitions what they were before swap files.

    Args:
        manifest: Of a workspace with decoded tables.
    """
    earlier = manifest.get(BEFORE_SWAPS)
    if earlier is None or _READ in manifest:
        return manifest
    swapped = sorted({(each["topic"], each["partition"]) for each in earlier["partitions"]})
    rows = [e for e in manifest["partitions"] if (e["topic"], e["partition"]) not in swapped]
    return {
        **manifest,
        "partitions": [*rows, *earlier["partitions"]],
        "record_types": [*manifest["record_types"], *earlier["record_types"]],
        _READ: swapped,
    }


def at_instant(manifest: Row, *, is_end: bool) -> Row:
    """Return a manifest as it is of state at an instant.

    Args:
        manifest: Of a workspace with decoded tables.
        is_end: The instant is the end of the dump: a broker loads the swap files.
    """
    return manifest if is_end else of_history(manifest)


def read_before_swaps(manifest: Row) -> Sequence[tuple[str, int]]:
    """Return the partitions whose records a manifest tells of as they were before swap files."""
    found: Sequence[tuple[str, int]] = manifest.get(_READ, ())
    return found


def is_before_swaps(partitions: Sequence[tuple[str, int]]) -> pc.Expression:
    """Return whether a record is of one of some partitions; at least one."""
    return reduce(
        or_,
        [(pc.field("topic") == topic) & (pc.field("partition") == n) for topic, n in partitions],
    )


def is_elsewhere(partitions: Sequence[tuple[str, int]]) -> pc.Expression:
    """Return whether a record is of none of them, as is one without a partition."""
    is_nowhere = pc.field("partition").is_null() | pc.field("topic").is_null()
    return is_nowhere | ~is_before_swaps(partitions)
