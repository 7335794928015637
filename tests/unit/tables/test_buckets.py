"""Every record lies in one bucket, and groups are whole in theirs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.tables.buckets import Bucket, buckets
from analytics.tables.record_reader import RecordReader
from tests.support.decoded_here import decoded_here

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


@pytest.fixture(scope="module")
def reader(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> RecordReader:
    folder = tmp_path_factory.mktemp("decoded")
    return RecordReader(decoded_here([str(failover_dump)], folder))


@pytest.mark.parametrize("most", [7, 100, 100_000])
def test_the_parts_of_a_dump_are_all_of_it(reader: RecordReader, most: int) -> None:
    for name, topic in (("offset_commit", TOPIC), ("share_update", "__share_group_state")):
        laid = buckets(topic, reader.counts([name]), most)
        found = Counter(
            place
            for bucket in laid
            for place in reader.table(name, bucket).select("partition", "offset").iter_rows()
        )
        assert set(found.values()) == {1}
        every = reader.table(name).select("partition", "offset").iter_rows()
        assert set(found) == set(every)


def test_a_group_is_whole_in_its_bucket(reader: RecordReader) -> None:
    laid = buckets(TOPIC, reader.counts(["offset_commit"]), 20)
    assert any(bucket.parts > 1 for bucket in laid)
    seen = Counter[tuple[int, str]]()
    for bucket in laid:
        rows = reader.table("offset_commit", bucket)
        seen.update(set(rows.select("partition", rows["key"].struct["group"]).iter_rows()))
    assert set(seen.values()) == {1}
