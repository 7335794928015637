"""The metadata log: which of its records are in force, and from which snapshot on (KIP-630, 868).

Records of a metadata transaction become visible together at its end; those of one that was aborted
or is open are never seen. Where the log does not begin at its start, the oldest whole snapshot is
what it is applied to.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.log.meanings import TIME
from analytics.replay.log.record_position import POSITION
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded

# From where on the metadata log at hand tells: from its start, or from a snapshot (KIP-630).

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


TRANSACTIONS: Final = {
    "begin_transaction_record": None,
    "end_transaction_record": True,
    "abort_transaction_record": False,
}
AROUND: Final = tuple(dict.fromkeys((*FIRST_TABLES, *TRANSACTIONS)))
"""Tables that tell which records are in force, by `topic`, `offset`, `timestamp` and `segment`."""


CERTAIN: Final = (
    pl.lit(value=True).alias("complete"),
    pl.lit(None, pl.String).alias("missing"),
)
"""The marks of rows of a log whose two cuts are one."""


@dataclass(frozen=True)
class MetadataLog:
    """Decoded tables cut at an instant, and what decides which metadata records are in force.

    Attributes:
        decoded: The tables.
        begins: From where on the log tells.
        hidden: Transactions that are not visible: where each begins, and where it is over (None
            while open).
    """

    decoded: Decoded
    begins: Beginning
    hidden: tuple[tuple[int, int | None], ...]

    def visible(self, name: str) -> pl.DataFrame:
        """Return the records of a metadata table ("topic_record") that are in force.

        Returns:
            `at` (bigint: the record's place in the order of events), `since` (timestamp),
            `metadata_offset` and `position` (struct of `POSITION`, where the table has these; all
            three null for what a snapshot holds), `value`.
        """
        end, base_end = snapshot_end(), self.begins.base_end
        tail = end.is_null() & (pl.col("offset") >= (base_end or 0))
        return self._chosen(name, tail if base_end is None else tail | (end == base_end))

    def logged(self, name: str) -> pl.DataFrame:
        """Return what the log itself tells, also before the snapshot to begin with.

        Returns:
            The columns of `visible`. Snapshots say what there is, only the log when it came to be;
            files of it are kept until all of their records lie before the oldest snapshot.
        """
        return self._chosen(name, snapshot_end().is_null())

    def _chosen(self, name: str, chosen: pl.Expr) -> pl.DataFrame:
        records, is_log = self.decoded[name].filter(chosen), snapshot_end().is_null()
        for begun_at, over_at in self.hidden:
            inside = pl.col("offset") > begun_at
            if over_at is not None:
                inside &= pl.col("offset") < over_at
            records = records.filter(~(is_log & inside))
        base_end = self.begins.base_end
        of_snapshot = pl.lit(None if base_end is None else base_end - 1, pl.Int64)
        columns = {
            "at": pl.when(is_log).then("offset").otherwise(of_snapshot),
            "since": pl.when(is_log).then(pl.col("timestamp").cast(TIME)),
            "metadata_offset": pl.when(is_log).then("offset"),
        }
        if set(POSITION) <= set(records.columns):
            columns["position"] = pl.when(is_log).then(pl.struct(POSITION))
        return records.select(**columns, value="value")


def metadata_log(decoded: Decoded) -> MetadataLog:
    """Decide which records of the metadata log are in force.

    Args:
        decoded: Cut at an instant, of the whole log: `AROUND`, and what is asked for later.
    """
    steps = pl.concat(
        decoded[name]
        .filter(snapshot_end().is_null())
        .select("offset", pl.lit(is_ended, pl.Boolean).alias("is_ended"))
        for name, is_ended in TRANSACTIONS.items()
    ).sort("offset")
    # One transaction at a time: the step after a beginning is its end. They are few.
    hidden = steps.select(
        pl.col("offset"),
        pl.col("offset").shift(-1).alias("over_at"),
        pl.col("is_ended").is_null().alias("begins"),
        pl.col("is_ended").shift(-1).fill_null(value=False).alias("takes_effect"),
    ).filter(pl.col("begins") & ~pl.col("takes_effect"))
    return MetadataLog(
        decoded, beginning(decoded), tuple(hidden.select("offset", "over_at").iter_rows())
    )
