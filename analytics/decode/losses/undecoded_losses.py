"""Records of coordinators' topics that do not decode: lost to every answer that they may change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.dump.inspection.found_losses import Loss, lacks, loss_rows, losses_of_rows, merged
from analytics.wire.cursor import Reason
from analytics.workspace import DECODED, DIVERGED, open_location
from schemas import COORDINATOR_TOPICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.workspace import Part

UNDECODED: Final = "undecoded"
_WHY: Final = "a record that cannot be decoded"
_GARBAGE: Final = b"\x01"
"""Keys from here on do not begin with the high byte of a version that anybody gave a type."""
_MOST: Final = 1000

Row = Mapping[str, Any]


def may_be_of_any_group(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """Return for each row of `undecoded` whether it may have changed what is known of a group.

    A type that a newer release writes says nothing about the types that are known.

    Args:
        rows: `reason` and `key`.
    """
    is_new = pc.and_(
        pc.equal(rows["reason"].cast(pa.string()), str(Reason.UNKNOWN_RECORD_TYPE)),
        pc.less(rows["key"].cast(pa.binary()), pa.scalar(_GARBAGE, pa.binary())),
    )
    return pc.invert(pc.fill_null(is_new, fill_value=False))


def runs(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return runs of offsets, each as its first and the one after its last."""
    sorted_offsets = np.unique(offsets)
    if not sorted_offsets.size:
        return []
    pieces = np.split(sorted_offsets, np.flatnonzero(np.diff(sorted_offsets) > 1) + 1)
    return [(int(piece[0]), int(piece[-1]) + 1) for piece in pieces]


def with_undecoded_losses(manifest: Row, parts: Sequence[Part], staging: str) -> dict[str, Any]:
    """Return a manifest in which records of logs that do not decode are losses of their partition.

    Damaged batches are losses already.

    Args:
        manifest: Of a dump that was decoded.
        parts: What was decoded.
        staging: Where the parts are.
    """
    found = _undecoded(parts, staging)
    if not found:
        return dict(manifest)
    rows = []
    for row in manifest["partitions"]:
        key = row["topic"], row["partition"]
        copy = None if row.get("is_leading", True) else row.get("copy")
        losses = found.get((copy, *key))
        rows.append(row if losses is None or row.get("copy") is None else _with(row, losses))
    return {**manifest, "partitions": rows}


def _with(row: Row, losses: Sequence[Loss]) -> dict[str, Any]:
    every = merged([*losses_of_rows(row["losses"]), *losses])
    said = lacks(row["topic"], row["partition"], every)
    ends = [row["end_offset"] if each.is_open else each.end for each in every]
    return {
        **row,
        "losses": loss_rows(every),
        "lacks": said,
        "complete_from": max(row.get("complete_from") or 0, *(each or 0 for each in ends)),
    }


def _undecoded(
    parts: Sequence[Part], staging: str
) -> dict[tuple[str | None, str, int], list[Loss]]:
    """Return losses by copy (None for the line that is decoded), topic and partition."""
    filesystem = open_location(staging)[0]
    paths: dict[str | None, list[str]] = defaultdict(list)
    for each in parts:
        folder, _, name = each.table.rpartition("/")
        if name == UNDECODED and each.rows:
            is_diverged = folder.startswith(f"{DIVERGED}/")
            copy = folder.removeprefix(f"{DIVERGED}/").removesuffix(f"/{DECODED}")
            paths[copy if is_diverged else None].append(each.path)
    found: dict[tuple[str | None, str, int], list[Loss]] = {}
    for line, files in paths.items():
        # A damaged batch has no offset of its own.
        records = ds.dataset(files, filesystem=filesystem).to_table(
            columns=["topic", "partition", "offset", "reason", "key"],
            filter=pc.field("topic").isin(COORDINATOR_TOPICS) & pc.field("offset").is_valid(),
        )
        records = records.filter(may_be_of_any_group(records))
        grouped = records.group_by(["topic", "partition"]).aggregate([("offset", "list")])
        for row in grouped.to_pylist():
            spans = runs(np.array(row["offset_list"], np.int64))
            over = max(len(spans) - _MOST, 0)
            spans = [(spans[0][0], spans[over][1]), *spans[over + 1 :]]
            key = line, row["topic"], row["partition"]
            found[key] = [Loss(first, end, _WHY) for first, end in spans]
    return found
