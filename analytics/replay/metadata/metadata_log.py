"""The metadata log: which of its records are in force, and from which snapshot on (KIP-630, 868).

Records of a metadata transaction become visible together at its end; those of one that was aborted
or is open are never seen. Where the log does not begin at its start, the oldest whole snapshot is
what it is applied to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.log.meanings import TIME
from analytics.replay.log.record_position import POSITION
from analytics.replay.metadata.log_beginning import FIRST_TABLES, Beginning, beginning, snapshot_end

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded

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
