"""Open transactions on partitions that share groups read.

A group with ``share.isolation.level=read_committed`` is given records up to the last stable offset
only: the first record of the oldest open transaction keeps back all behind it. Which transactions
are open, and on which partitions, the transaction log says; not at which offset they began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.share.settings import ISOLATION, READ_COMMITTED
from analytics.replay.log.row_columns import instant

if TYPE_CHECKING:
    from analytics.questions.share.settings import ShareSettings

COLUMNS: Final = ("partition", "offset", "is_tombstone", "key", "value")
"""What is needed of the decoded table ``transaction_log``."""

OPEN: Final = (1, 2, 3)
"""Ongoing, PrepareCommit, PrepareAbort: no marker says yet that it is over."""

TRANSACTIONS: Final = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "transactional_id": pl.String(),
        "transaction_since": pl.Datetime("us", "UTC"),
    }
)
STABLE: Final = "last_stable_offset"
STABLE_ENDS: Final = pl.Schema({"topic": pl.String(), "partition": pl.Int32(), STABLE: pl.Int64()})
"""Where logs end for who reads committed records only, as far as it is known."""
NO_TRANSACTION_LOG: Final = (
    "whether an open transaction holds records back cannot be told: the dump has no transaction "
    "log, and no log of the topic with its producer snapshots"
)
_PLACE: Final = ("topic", "partition")


def open_transactions(records: pl.DataFrame) -> pl.DataFrame:
    """Return the oldest open transaction of each partition that has one: `TRANSACTIONS`.

    Args:
        records: `COLUMNS`, cut at the instant.
    """
    if records.is_empty():
        return TRANSACTIONS.to_frame()
    key, value = pl.col("key").struct, pl.col("value").struct
    last = (
        records.select(
            "partition",
            "offset",
            "is_tombstone",
            transactional_id=key.field("transactional_id"),
            status=value.field("transaction_status"),
            since=value.field("transaction_start_timestamp_ms"),
            topics=value.field("transaction_partitions"),
        )
        .sort("partition", "offset")
        .unique("transactional_id", keep="last", maintain_order=True)
    )
    each = pl.col("topics").struct
    since = pl.when(pl.col("since") > 0).then("since")
    found = (
        last.filter(~pl.col("is_tombstone") & pl.col("status").is_in(OPEN))
        .filter(pl.col("topics").list.len() > 0)
        .explode("topics")
        .select(
            "transactional_id",
            transaction_since=instant(since),
            topic=each.field("topic"),
            partition=each.field("partition_ids"),
        )
        .filter(pl.col("partition").list.len() > 0)
        .explode("partition")
    )
    oldest = found.sort("transaction_since", "transactional_id", nulls_last=True)
    return oldest.unique(_PLACE, keep="first", maintain_order=True).select(
        pl.col(name).cast(kind) for name, kind in TRANSACTIONS.items()
    )


def with_isolation(
    rows: pl.DataFrame,
    settings: ShareSettings,
    transactions: pl.DataFrame | None,
    stable: pl.DataFrame,
) -> pl.DataFrame:
    """Add isolation levels, last stable offsets, and the open transactions.

    Args:
        rows: `group_id`, `topic`, `partition`, `reason`.
        settings: What groups go by.
        transactions: `TRANSACTIONS`; None where the dump has no transaction log.
        stable: `STABLE_ENDS`.
    """
    rows = settings.with_setting(rows, ISOLATION, "isolation_level").drop("isolation_level_since")
    is_committed = pl.col("isolation_level") == READ_COMMITTED
    known = stable.filter(pl.col(STABLE).is_not_null())
    rows = _of_places(rows, known, is_committed)
    if transactions is None:
        is_open_question = is_committed & pl.col(STABLE).is_null()
        why = pl.when(is_open_question).then(pl.lit(NO_TRANSACTION_LOG))
        rows = rows.with_columns(reason=pl.coalesce("reason", why))
        transactions = TRANSACTIONS.to_frame()
    return _of_places(rows, transactions, is_committed)


def _of_places(rows: pl.DataFrame, known: pl.DataFrame, is_committed: pl.Expr) -> pl.DataFrame:
    """Add what is known of partitions, for who reads committed records."""
    one = known.unique(_PLACE, keep="last", maintain_order=True)
    names = [name for name in known.columns if name not in _PLACE]
    return rows.join(one, _PLACE, "left", maintain_order="left").with_columns(
        pl.when(is_committed).then(name).alias(name) for name in names
    )
