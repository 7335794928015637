"""Whether a dump that has no state of a share partition shows that there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.log.key_homes import home_of_share

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN_HOME: Final = (
    "no record of its state is in the dump, and how many partitions __share_group_state has is not "
    "known, so neither is the one it belongs to"
)


@dataclass(frozen=True)
class StateCoverage:
    """What the dump shows of `__share_group_state`.

    Attributes:
        partitions: How many partitions it has; None where that is not known.
        gaps: By partition, what the dump lacks of it, in words; others are whole.
    """

    partitions: int | None = None
    gaps: Mapping[int, str] = field(default_factory=dict)


def with_absence(shares: pa.Table, coverage: StateCoverage) -> pa.Table:
    """Say of share partitions without state whether that is known: `complete` and `missing`.

    Args:
        shares: Rows of `share_partitions`.
        coverage: What the dump shows.
    """
    has_none = pc.and_(
        pc.is_null(shares["record_offset"]), pc.equal(shares["phase"], "initialized")
    )
    if not pc.any(has_none).as_py():
        return shares
    told = shares.filter(has_none)
    why = pa.array(_reasons(told, coverage), pa.string())
    missing = pc.replace_with_mask(shares["missing"].combine_chunks(), _one(has_none), why)
    complete = pc.replace_with_mask(
        shares["complete"].combine_chunks(), _one(has_none), pc.is_null(why)
    )
    for name, column in (("missing", missing), ("complete", complete)):
        shares = shares.set_column(shares.column_names.index(name), name, column)
    return shares


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _reasons(shares: pa.Table, coverage: StateCoverage) -> Iterator[str | None]:
    columns = (shares[name].to_pylist() for name in ("group_id", "topic_id", "partition"))
    for group, topic_id, partition in zip(*columns, strict=True):
        if coverage.partitions is None:
            yield UNKNOWN_HOME
            continue
        home = home_of_share(group, topic_id, partition, coverage.partitions)
        gap = coverage.gaps.get(home)
        yield None if gap is None else f"no record of its state is in the dump, and {gap}"
