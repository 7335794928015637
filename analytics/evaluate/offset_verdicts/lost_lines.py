"""What a line of history that did not survive had committed last, place by place."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.offset_verdicts.words import PLACE, Row

NO_PRODUCER = -1
COMMIT, ABORT = "COMMIT", "ABORT"

RECORDS = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("record_offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("producer_id", pa.int64()),
    ]
)
"""Records of commits; a tombstone has no `committed_offset`."""

Ends = Mapping[int, list[tuple[int, str]]]
"""By producer, where its transactions end, and how."""


@dataclass(frozen=True)
class LostLine:
    """A line of one internal partition that parts from the one that survived.

    Attributes:
        copy: Whose log has it.
        partition: Of `__consumer_offsets`.
        diverges_at: The first offset at which it differs.
        leader_epoch: Of the leader whose election made it a lost one; None where it is not known.
        elected_at: When that was, or no later than when; None where the dump does not say.
        elected_after: Where only bounds are known, the time before which it was not.
        committed_below: The offset below which its records are known to have been committed; None
            where all of them were.
        last: What each place had at its end (`last_on_line`).
        lacks: Which records of either line the dump lacks, in a sentence; None where none.
        types: Of groups, where another one than the surviving line says: what they were there.
    """

    copy: str
    partition: int
    diverges_at: int
    leader_epoch: int | None
    elected_at: datetime | None
    last: tuple[Row, ...]
    lacks: str | None = None
    elected_after: datetime | None = None
    committed_below: int | None = None
    types: Mapping[str, str] = field(default_factory=dict)


def transaction_ends(markers: Iterable[Row]) -> Ends:
    """Return where transactions end, by producer.

    Args:
        markers: `producer_id`, `offset` and `control_type`, in the order of the log.
    """
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for row in markers:
        if row["control_type"] in {COMMIT, ABORT}:
            found[row["producer_id"]].append((row["offset"], row["control_type"]))
    return found


def last_on_line(records: pa.Table, ends: Ends) -> tuple[Row, ...]:
    """Return the last change of each place that took effect on a line.

    A commit in a transaction takes effect with its COMMIT marker; what another commit made later
    has replaced by then it does not replace (``OffsetMetadataManager``).

    Args:
        records: As `RECORDS`, only of the line, and those before it that were pending there.
        ends: Of `transaction_ends`.

    Returns:
        Rows of `RECORDS`; where the offset was deleted, `committed_offset` is None.
    """
    producers = pc.fill_null(records["producer_id"], NO_PRODUCER)
    is_plain = pc.equal(producers, NO_PRODUCER)
    in_transactions = records.filter(pc.invert(is_plain))
    is_committed = [
        _end(ends, producer, offset) == COMMIT
        for producer, offset in zip(
            in_transactions["producer_id"].to_pylist(),
            in_transactions["record_offset"].to_pylist(),
            strict=True,
        )
    ]
    committed = in_transactions.filter(pa.array(is_committed, pa.bool_()))
    effective = pa.concat_tables([records.filter(is_plain), committed])
    last = effective.group_by(list(PLACE)).aggregate([("record_offset", "max")])
    is_last = pc.is_in(effective["record_offset"], last["record_offset_max"].combine_chunks())
    order = [(name, "ascending") for name in PLACE]
    return tuple(effective.filter(is_last).sort_by(order).to_pylist())


def still_open(records: pa.Table, ends: Ends) -> pa.Table:
    """Return the records whose transaction had not ended.

    Args:
        records: As `RECORDS`.
        ends: Of `transaction_ends`, up to the offset that counts.
    """
    producers = pc.fill_null(records["producer_id"], NO_PRODUCER).to_pylist()
    offsets = records["record_offset"].to_pylist()
    is_open = [
        producer != NO_PRODUCER and _end(ends, producer, offset) is None
        for producer, offset in zip(producers, offsets, strict=True)
    ]
    return records.filter(pa.array(is_open, pa.bool_()))


def _end(ends: Ends, producer: int, offset: int) -> str | None:
    """Return how the transaction of a record ended."""
    of_producer = ends.get(producer, [])
    place = bisect_right(of_producer, offset, key=lambda end: end[0])
    return of_producer[place][1] if place < len(of_producer) else None
