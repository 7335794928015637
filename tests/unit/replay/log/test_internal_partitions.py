"""Keys belong to the internal partitions that Kafka's coordinators choose for them."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.replay.log.topic_homes import home_of, internal_partition, share_key
from tests.support import replayed_cuts

OF_50 = {
    "": 0,
    "group": 47,
    "my-group": 12,
    "console-consumer-12345": 6,
    "gruppe-ä": 48,
    "😀": 49,
    "polygenelubricants": 0,
    "test-group:AAAAAAAAAAAAAAAAAAAAAQ:0": 22,
    "G1:Lwh6iXlUTdGLeFDrCWF_2g:3": 8,
}


def homes(keys: list[str | None], partitions: int) -> list[int | None]:
    column = internal_partition(pl.col("key"), partitions)
    return pl.DataFrame({"key": keys}, {"key": pl.String}).select(column).to_series().to_list()


def test_the_partition_is_that_of_javas_hash_over_utf_16() -> None:
    assert dict(zip(OF_50, homes([*OF_50], 50), strict=True)) == OF_50


@pytest.mark.parametrize("key", OF_50)
def test_one_key_belongs_where_a_column_of_it_does(key: str) -> None:
    assert home_of(key, 50) == OF_50[key]


@given(st.lists(st.none() | st.text(), max_size=20), st.integers(1, 1000))
def test_any_keys_belong_where_a_plain_loop_over_code_units_puts_them(
    keys: list[str | None], partitions: int
) -> None:
    plain = [None if key is None else replayed_cuts.home_of(key, partitions) for key in keys]
    assert homes(keys, partitions) == plain
    assert [None if key is None else home_of(key, partitions) for key in keys] == plain


def test_share_state_is_hashed_by_group_topic_id_and_partition() -> None:
    given = pl.DataFrame({"g": ["a:b"], "t": ["id"], "p": [3]})
    key = share_key(pl.col("g"), pl.col("t"), pl.col("p"))
    assert given.select(key).item() == "a:b:id:3"
