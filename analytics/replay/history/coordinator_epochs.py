"""The table `coordinator_epochs`: who coordinated each internal partition, and from where to where.

The leader epoch of a batch is that of the broker that wrote it; who that was only the metadata log
tells.
"""

from __future__ import annotations

import polars as pl

KEY = ("topic", "partition", "leader_epoch")


def coordinator_epochs(found: pl.DataFrame, elected: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of the table `coordinator_epochs`, and where each epoch's first record is.

    Args:
        found: Of what is in the dump of each leader epoch: `KEY`, `from_offset`, `from_timestamp`,
            `last_offset`, `last_timestamp`, `records`, and `place` of the first.
        elected: `KEY`, `leader`, `unclean` and `since` of elections, up to the same instant.

    Returns:
        The table's columns and `place` (struct of `IN_DUMP`).
    """
    leaders = elected.select(*KEY, "leader", "unclean", pl.col("since").alias("elected_at"))
    over = pl.col("leader_epoch").shift(-1).over("topic", "partition").is_not_null()
    return (
        found.sort(KEY)
        .with_columns(
            pl.when(over).then("last_offset").alias("to_offset"),
            pl.when(over).then("last_timestamp").alias("to_timestamp"),
        )
        .join(leaders, on=KEY, how="left", maintain_order="left")
    )
