"""How many offsets ranges have, also those that end at the largest offset there is."""

from __future__ import annotations

import numpy as np
import polars as pl

from analytics.questions.share.share_log import RANGES
from analytics.questions.share.window import delivery_counts
from analytics.replay.share_fold import Ranges

MOST = (1 << 63) - 1


def ranges(*bounds: tuple[int, int]) -> Ranges:
    first, last = np.array(bounds, np.int64).T
    keys = np.zeros(len(bounds), np.int64)
    return Ranges(keys, first, last, keys.astype(np.int8), keys.astype(np.int16))


def test_a_range_up_to_the_largest_offset_has_one_more_than_a_number_holds() -> None:
    assert ranges((0, MOST), (5, 5), (MOST, MOST)).sizes.tolist() == [MOST + 1, 1, 1]


def test_more_than_a_number_holds_is_the_largest() -> None:
    for found, count in ((ranges((0, MOST)), MOST), (ranges((1, 4), (6, 6)), 5)):
        assert found.counted(found.key, 1).tolist() == [count]


def test_the_histogram_has_the_largest_number_too() -> None:
    names = {name: ["g"] for name in ("group_id", "topic_id", "topic")}
    rows = pl.DataFrame({"row": [0], **names, "partition": [0], "delivery_count_limit": [5]})
    stored = pl.DataFrame(
        {"row": [0], "first": [0], "last": [MOST], "state": [0], "count": [0]},
        {"row": pl.Int64, **{name: RANGES[name] for name in RANGES.names()[1:]}},
    )
    (row,) = delivery_counts(rows, stored).to_dicts()
    assert row["records"] == MOST
