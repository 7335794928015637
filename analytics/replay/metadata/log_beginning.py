"""From where on the metadata log at hand tells: from its start, or from a snapshot (KIP-630)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.log.meanings import TIME
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded

FIRST_TABLES: Final = (
    "control_markers",
    "begin_transaction_record",
    "feature_level_record",
    "register_broker_record",
)
"""Of what is found at the very start of any log: leader change, bootstrap, features, brokers."""

_SNAPSHOT: Final = r"(\d{20})-\d{10}\.checkpoint$"


@dataclass(frozen=True)
class Beginning:
    """From where on the metadata log at hand tells what happened.

    Attributes:
        has_log: There is a log.
        is_cut: It does not begin at its start.
        oldest: The end offset of the oldest snapshot; None where there is none.
        first_at: The time of the first record.
    """

    has_log: bool
    is_cut: bool
    oldest: int | None
    first_at: datetime | None

    @property
    def tells_from(self) -> datetime | None:
        """From when on it tells; None where the log is there from its start."""
        return self.first_at if self.is_cut else None

    @property
    def base_end(self) -> int | None:
        """The end offset of the snapshot to begin with, if the log has to."""
        return self.oldest if self.is_cut else None


def snapshot_end() -> pl.Expr:
    """Return the end offset of the snapshot a record of the metadata log lies in, else null."""
    return pl.col("segment").str.extract(_SNAPSHOT).cast(pl.Int64)


def beginning(decoded: Decoded) -> Beginning:
    """Return how the log at hand begins; `decoded` has `FIRST_TABLES`."""
    first = pl.concat(
        decoded[name]
        .filter(pl.col("topic") == CLUSTER_METADATA)
        .select("offset", "segment", pl.col("timestamp").cast(TIME))
        for name in FIRST_TABLES
    ).with_columns(snapshot_end().alias("end"))
    of_log = first.filter(pl.col("end").is_null())
    # An end offset of zero is that of a bootstrap file, which is no state of the log.
    snapshots = first.filter(pl.col("end") > 0)
    starts_at, oldest = of_log["offset"].min(), snapshots["end"].min()
    return Beginning(
        has_log=first.height > 0,
        is_cut=starts_at != 0,
        oldest=oldest if isinstance(oldest, int) else None,
        first_at=pl.concat([of_log, snapshots])["timestamp"].min(),  # type: ignore[arg-type]
    )
