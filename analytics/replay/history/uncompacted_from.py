"""From where on a dump shows every record that was ever written to an internal partition."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.replay.log.coverage import Coverage

NEVER = 2**63 - 1
HOME = "coordinator_partition"


def uncompacted_from(coverage: Coverage) -> pl.Expr:
    """Return the first offset behind all that compaction or a loss took; 0 where nothing is gone.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
    """
    return _start(coverage.shown_from)


def lost_until(coverage: Coverage) -> pl.Expr:
    """Return the first offset behind all losses; 0 where nothing was lost. Compaction is no loss.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
    """
    return _start(coverage.complete_from)


def born_from(coverage: Coverage) -> pl.Expr:
    """Return the first offset where what has no earlier record had none; 0 where none is gone.

    The cleaner leaves the last record of every key. Where anything else took records, or nothing
    tells how far the cleaner has been, no first record is sure to be the first: `NEVER`.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
    """
    return _start({key: coverage.cleaned_until.get(key, NEVER) for key in coverage.shown_from})


def _start(offsets: Mapping[tuple[str, int], int]) -> pl.Expr:
    starts = {number: at for (topic, number), at in offsets.items() if topic == CONSUMER_OFFSETS}
    numbers = pl.Series(list(starts), dtype=pl.Int32)
    ends = pl.Series(list(starts.values()), dtype=pl.Int64)
    return pl.col(HOME).replace_strict(numbers, ends, default=0, return_dtype=pl.Int64)
