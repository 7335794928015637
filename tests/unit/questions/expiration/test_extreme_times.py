"""Expire times at the ends of their type."""

from __future__ import annotations

import polars as pl

from analytics.questions.expiration.offset_expiration import difference

LEAST, MOST = -(1 << 63), (1 << 63) - 1


def test_a_difference_that_is_more_than_a_number_holds_is_the_largest_or_the_least() -> None:
    times = pl.DataFrame({"expire": [LEAST, 5, None, MOST], "commit": [1_700, 1, 3, -7]})
    found = times.select(difference(pl.col("expire"), pl.col("commit")))

    assert found.to_series().to_list() == [LEAST, 4, None, MOST]
