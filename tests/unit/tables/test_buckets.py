"""Every partition lies in one bucket, or in all parts of itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analytics.tables.buckets import Bucket, buckets

TOPIC = "__consumer_offsets"


def _has(bucket: Bucket, partition: int) -> bool:
    return (partition in bucket.partitions) is not bucket.is_rest


@given(st.dictionaries(st.integers(0, 49), st.integers(1, 500), max_size=30))
def test_every_partition_is_in_one_bucket_or_in_all_parts_of_itself(counts: dict[int, int]) -> None:
    laid = buckets(TOPIC, counts, 100)
    for partition in range(50):
        holding = [each for each in laid if _has(each, partition)]
        assert [each.part for each in holding] == list(range(holding[0].parts))
        assert len(holding) == -(-max(counts.get(partition, 1), 1) // 100)


@given(st.dictionaries(st.integers(0, 49), st.integers(1, 500), min_size=1, max_size=30))
def test_small_partitions_share_a_bucket_as_far_as_they_fit(counts: dict[int, int]) -> None:
    for bucket in buckets(TOPIC, counts, 100):
        held = sum(count for number, count in counts.items() if _has(bucket, number))
        assert held // bucket.parts <= 100
