"""Every record lies in one bucket, with all of its group or share partition."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.tables import buckets as module
from analytics.tables.buckets import Bucket, BucketFiles, GroupBucket, buckets, rows_of_bucket


@given(st.lists(st.lists(st.integers(0, 6), max_size=20), max_size=6), st.integers(1, 8))
def test_rows_lie_in_their_bucket_in_order_however_many_files_may_be_open(
    pieces: list[list[int]], most_open: int
) -> None:
    numbered = enumerate(number for piece in pieces for number in piece)
    rows = pl.DataFrame(list(numbered), {"place": pl.Int64, "bucket": pl.Int64}, orient="row")
    with TemporaryDirectory() as folder, mock.patch.object(module, "MOST_OPEN", most_open):
        with BucketFiles(folder, "table") as files:
            for piece in pieces:
                files.add(rows.head(len(piece)), pl.col("bucket"))
                assert len(files._open) <= most_open
                rows = rows.slice(len(piece))
        for number in range(7):
            found = [each["place"].to_list() for each in rows_of_bucket(folder, number, "table")]
            mine = enumerate(number for piece in pieces for number in piece)
            expected = [place for place, bucket in mine if bucket == number]
            assert [place for some in found for place in some] == expected


GROUPS, SHARES = "__consumer_offsets", "__share_group_state"


def _has(bucket: Bucket, partition: int) -> bool:
    return (partition in bucket.partitions) is not bucket.is_rest


@given(st.dictionaries(st.integers(0, 49), st.integers(1, 500), max_size=30))
def test_every_partition_is_in_one_bucket_or_in_all_parts_of_itself(counts: dict[int, int]) -> None:
    laid = buckets(SHARES, counts, 100)
    for partition in range(50):
        holding = [each for each in laid if _has(each, partition)]
        assert [each.part for each in holding] == list(range(holding[0].parts))
        assert len(holding) == -(-max(counts.get(partition, 1), 1) // 100)


@given(st.dictionaries(st.integers(0, 49), st.integers(1, 500), min_size=1, max_size=30))
def test_small_partitions_share_a_bucket_as_far_as_they_fit(counts: dict[int, int]) -> None:
    for bucket in buckets(SHARES, counts, 100):
        held = sum(count for number, count in counts.items() if _has(bucket, number))
        assert held // bucket.parts <= 100
        assert bucket.groups is None, "a share partition alone does not tell its group"


@given(st.dictionaries(st.integers(0, 49), st.integers(1, 500), max_size=30))
def test_groups_are_divided_among_all_buckets_wherever_they_lie(counts: dict[int, int]) -> None:
    laid = buckets(GROUPS, counts, 100)
    assert all(_has(bucket, partition) for bucket in laid for partition in range(50))
    assert len(laid) == max(-(-sum(counts.values()) // 100), 1)
    assert [each.part for each in laid] == list(range(len(laid)))
    assert {each.parts for each in laid} == {len(laid)}
    assert [each.is_first for each in laid] == [True] + [False] * (len(laid) - 1)
    if len(laid) > 1:
        assert [each.groups for each in laid] == [
            GroupBucket(number, len(laid)) for number in range(len(laid))
        ]


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(1, 7), st.integers(1, 5))
def test_a_group_is_in_one_bucket_and_in_one_of_each_division_of_it(
    names: list[str], parts: int, times: int
) -> None:
    groups = pl.DataFrame({"group_id": names}, {"group_id": pl.String})

    def among(parts: int) -> list[list[str]]:
        every = (GroupBucket(number, parts).has(pl.col("group_id")) for number in range(parts))
        return [groups.filter(each)["group_id"].to_list() for each in every]

    coarse, fine = among(parts), among(parts * times)
    assert sorted(name for some in coarse for name in some) == sorted(names)
    for number, some in enumerate(fine):
        assert GroupBucket(number, parts * times).is_within(parts)
        assert {*some} <= {*coarse[number % parts]}


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {b"other": b"3 of 4"},
        *(
            {b"groupscope.groups": words}
            for words in (b"", b"3", b"3 of 0", b"4 of 4", b"\xff of 4")
        ),
    ],
)
def test_a_file_that_does_not_say_it_says_nothing(metadata: dict[bytes, bytes] | None) -> None:
    assert GroupBucket.of_file(metadata) is None


BUCKET = GroupBucket(1, 2)
NAMES = pl.DataFrame({"group_id": [*map(str, range(99))]})
IN_IT, ELSEWHERE = (
    NAMES.filter(GroupBucket(part, 2).has(pl.col("group_id")))["group_id"][0] for part in (1, 0)
)


def test_a_file_says_of_which_groups_its_rows_are(tmp_path: Path) -> None:
    rows = pl.DataFrame({"group_id": [IN_IT]})
    with pq.ParquetWriter(tmp_path / "file", rows.to_arrow().schema) as file:
        file.write_table(rows.to_arrow())
        file.add_key_value_metadata(BUCKET.label_of(rows))
    metadata = pq.read_metadata(tmp_path / "file").metadata
    assert GroupBucket.of_file(metadata) == BUCKET


@pytest.mark.parametrize("others", [[ELSEWHERE], [IN_IT, ELSEWHERE], [IN_IT, None]])
def test_a_file_with_rows_of_other_groups_or_of_none_says_nothing(others: list[str | None]) -> None:
    assert BUCKET.label_of(pl.DataFrame({"group_id": [IN_IT, IN_IT]}))
    assert BUCKET.label_of(pl.DataFrame({"group_id": others})) == {}
    assert BUCKET.label_of(pl.DataFrame({"topic": [IN_IT]})) == {}
