"""Up to which offset the log of a data partition is still the one an offset was committed for.

A consumer that finds another log under its offset detects it by leader epochs (KIP-320); so does
this, before the offset is given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.dump.copies.epochs import EpochLine, truncation_offset

KEY = ("topic", "partition")
LIMITS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("epoch", pa.int32()),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
        ("same_up_to", pa.int64()),
        ("same_by", pa.string()),
    ]
)
NO_EPOCH = -1


@dataclass(frozen=True)
class DataLog:
    """What is known of the log of a partition.

    Attributes:
        log_start_offset: None where it is not known.
        log_end_offset: None where it is not known.
        epochs: (epoch, first offset), ascending; empty where they are not known.
    """

    log_start_offset: int | None = None
    log_end_offset: int | None = None
    epochs: tuple[tuple[int, int], ...] = ()

    @property
    def line(self) -> EpochLine | None:
        """Its epochs; None where they or the end are not known."""
        if not self.epochs or self.log_end_offset is None:
            return None
        return EpochLine(self.epochs, self.log_end_offset)


Logs = Mapping[tuple[str, int], DataLog]


def data_limits(epochs: pa.Table, then: Logs, now: Logs) -> pa.Table:
    """Return what the logs allow, for each partition and committed leader epoch.

    Args:
        epochs: `topic`, `partition`, `epoch` (-1: none was committed), in any number of rows.
        then: The logs as the line of the past has them.
        now: The logs as they are at present.

    Returns:
        `LIMITS`: a row for each different (topic, partition, epoch). `same_up_to` is the offset up
        to which the present log surely is the one that was read, null where nothing shows it;
        `same_by` the words for it.
    """
    distinct = epochs.select([*KEY, "epoch"]).group_by([*KEY, "epoch"]).aggregate([])
    rows = [_limit(each, then, now) for each in distinct.to_pylist()]
    return pa.Table.from_pylist(rows, schema=LIMITS)


def _limit(row: Mapping[str, Any], then: Logs, now: Logs) -> dict[str, Any]:
    key = (row["topic"], row["partition"])
    present = now.get(key, DataLog())
    same_up_to, same_by = _same_up_to(row["epoch"], then.get(key, DataLog()), present)
    return {
        **row,
        "log_start_offset": present.log_start_offset,
        "log_end_offset": present.log_end_offset,
        "same_up_to": same_up_to,
        "same_by": same_by,
    }


def _same_up_to(epoch: int, then: DataLog, now: DataLog) -> tuple[int | None, str | None]:
    line = now.line
    if line is None:
        return None, None
    if epoch > NO_EPOCH:
        _, end = line.end_of(epoch)
        return end, f"leader epoch {epoch} ends at offset {end} of the present log"
    past = then.line
    if past is None:
        return None, None
    end = truncation_offset(past, line)
    return end, f"the log it was committed for and the present one part at offset {end}"


def logs_of(rows: pa.Table) -> dict[tuple[str, int], DataLog]:
    """Return log start and end offsets by partition.

    Args:
        rows: `topic`, `partition`, `log_start_offset`, `log_end_offset`.
    """
    return {
        (each["topic"], each["partition"]): DataLog(
            each["log_start_offset"], each["log_end_offset"]
        )
        for each in rows.to_pylist()
    }


def with_limits(rows: pa.Table, limits: pa.Table) -> pa.Table:
    """Join the limits to rows that have `topic`, `partition` and `committed_leader_epoch`."""
    epoch = pc.fill_null(rows["committed_leader_epoch"], NO_EPOCH)
    rows = rows.append_column("epoch", pc.cast(epoch, pa.int32()))
    return rows.join(limits, [*KEY, "epoch"], join_type="left outer")
