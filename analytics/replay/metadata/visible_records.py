"""The metadata log: which of its records are in force, and from which snapshot on (KIP-630, 868).

Records of a metadata transaction become visible together at its end; those of one that was aborted
or is open are never seen. Where the log does not begin at its start, the oldest whole snapshot is
what it is applied to.

Takes decoded tables by name as frames of polars, cut at an instant, of whole logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from analytics.replay.spans.intervals import TIME

TOPIC: Final = "__cluster_metadata"
TRANSACTIONS: Final = {
    "begin_transaction_record": None,
    "end_transaction_record": True,
    "abort_transaction_record": False,
}
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
        tells: There is a log.
        is_cut: It does not begin at its start.
        oldest: The end offset of the oldest snapshot; None where there is none.
        first_at: The time of the first record.
    """

    tells: bool
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


def beginning(decoded: Mapping[str, pl.DataFrame]) -> Beginning:
    """Return how the log at hand begins; `decoded` has `FIRST_TABLES`."""
    first = pl.concat(
        decoded[name]
        .filter(pl.col("topic") == TOPIC)
        .select("offset", "segment", pl.col("timestamp").cast(TIME))
        for name in FIRST_TABLES
    ).with_columns(snapshot_end().alias("end"))
    of_log = first.filter(pl.col("end").is_null())
    # An end offset of zero is that of a bootstrap file, which is no state of the log.
    snapshots = first.filter(pl.col("end") > 0)
    starts_at, oldest = of_log["offset"].min(), snapshots["end"].min()
    return Beginning(
        tells=first.height > 0,
        is_cut=starts_at != 0,
        oldest=oldest if isinstance(oldest, int) else None,
        first_at=pl.concat([of_log, snapshots])["timestamp"].min(),  # type: ignore[arg-type]
    )


def visible(decoded: Mapping[str, pl.DataFrame], name: str, begins: Beginning) -> pl.DataFrame:
    """Return the records of a metadata table ("topic_record") that are in force.

    Args:
        decoded: Has that table and those of `TRANSACTIONS`.
        name: Of the table.
        begins: How the log begins.

    Returns:
        `at` (bigint: the record's place in the order of events), `since` (timestamp, null for what
        a snapshot holds), `value`.
    """
    records = decoded[name].with_columns(snapshot_end().alias("end"))
    is_log, base_end = pl.col("end").is_null(), begins.base_end
    tail = is_log & (pl.col("offset") >= (base_end or 0))
    records = records.filter(tail if base_end is None else tail | (pl.col("end") == base_end))
    for begun_at, over_at in _hidden(decoded):
        inside = pl.col("offset") > begun_at
        if over_at is not None:
            inside &= pl.col("offset") < over_at
        records = records.filter(~(is_log & inside))
    of_snapshot = pl.lit(None if base_end is None else base_end - 1, pl.Int64)
    return records.select(
        pl.when(is_log).then("offset").otherwise(of_snapshot).alias("at"),
        pl.when(is_log).then(pl.col("timestamp").cast(TIME)).alias("since"),
        "value",
    )


def _hidden(decoded: Mapping[str, pl.DataFrame]) -> list[tuple[int, int | None]]:
    """Return the transactions that are not seen: where they begin, and where they are over."""
    steps = pl.concat(
        decoded[name]
        .filter(snapshot_end().is_null())
        .select("offset", pl.lit(is_ended, pl.Boolean).alias("is_ended"))
        for name, is_ended in TRANSACTIONS.items()
    ).sort("offset")
    # One transaction at a time: the step after a beginning is its end. They are few.
    begun = steps.with_columns(
        pl.col("offset").shift(-1).alias("over_at"),
        pl.col("is_ended").shift(-1).fill_null(value=False).alias("takes_effect"),
    ).filter(pl.col("is_ended").is_null() & ~pl.col("takes_effect"))
    return list(zip(begun["offset"].to_list(), begun["over_at"].to_list(), strict=True))
