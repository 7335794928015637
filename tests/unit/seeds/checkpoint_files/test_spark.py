"""The checkpoint folder of a Structured Streaming query, file by file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analytics.errors import InputNotRecognizedError
from analytics.seeds.region.merge import latest_complete, merged
from analytics.seeds.region.recognized import read_checkpoints
from analytics.seeds.region.table import evaluate_regions
from schemas.evaluation_rules import region_rules

METADATA = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000, "conf": {}})


def query(folder: Path, batches: dict[int, list[str]], *finished: int, version: str = "v1") -> str:
    for name in ("offsets", "commits", "sources", "state"):
        (folder / name).mkdir()
    (folder / "metadata").write_text('{"id":"11111111-2222-3333-4444-555555555555"}')
    for number, lines in batches.items():
        text = "\n".join([version, METADATA, *lines])
        (folder / "offsets" / str(number)).write_text(text)
        (folder / "offsets" / f".{number}.crc").write_bytes(b"crc\x00")
        (folder / "offsets" / f".{number}.1f2e.tmp").write_text("half")
    for number in finished:
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return str(folder)


def test_a_batch_that_is_not_finished_is_not_complete(tmp_path: Path) -> None:
    batches = {
        0: ['{"orders":{"0":5,"1":7}}', '{"payments":{"0":1}}'],
        1: ['{"orders":{"0":9,"1":9}}', '{"payments":{"0":2}}'],
    }
    found = merged(read_checkpoints([query(tmp_path, batches, 0)], "etl"), 15_000)
    assert [each.is_merged for each in found] == [True, False]
    assert found[1].missing == "its writer never finished it"
    latest = latest_complete(found)
    assert latest is not None
    assert {place: each.offset for place, each in latest.offsets.items()} == {
        ("orders", 0): 5,
        ("orders", 1): 7,
        ("payments", 0): 1,
    }
    assert latest.contributors == ["source 0", "source 1"]
    assert latest.made_at == 1_700_000_000_000
    assert latest.key.group_id == "etl"


@pytest.mark.parametrize("line", ["-", "12", '{"logOffset":3}', "{}"])
def test_sources_that_have_nothing_of_kafka_have_no_partitions(line: str, tmp_path: Path) -> None:
    path = query(tmp_path, {4: ['{"orders":{"0":5}}', line]}, 4)
    (found,) = merged(read_checkpoints([path], None), 15_000)
    assert (found.is_merged, list(found.offsets)) == (True, [("orders", 0)])


@pytest.mark.parametrize(
    "lines",
    [
        [json.dumps({"clicks": '{"orders":{"0":5}}', "rates": "7", "none": None})],
        ['clicks:{"orders":{"0":5}}', "rates:7", "none:-"],
    ],
)
def test_named_sources_are_read_in_both_of_their_forms(lines: list[str], tmp_path: Path) -> None:
    path = query(tmp_path, {4: lines}, 4, version="v2")
    (found,) = merged(read_checkpoints([path], None), 15_000)
    assert found.contributors == ["clicks", "none", "rates"]
    assert found.offsets["orders", 0].offset == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "version is ''"),
        ("v3\n{}\n-", "version is 'v3'"),
        ("v1\n{}", "sources is []"),
        ("v1\n{}\n{half", "source 0: this is not JSON"),
        ('v1\n{}\n{"orders":{"0":"five"}}', "orders: 0 is 'five'"),
        ('v1\n{}\n{"orders":{"x":5}}', "orders.x is 5"),
        ("v1\nhalf\n-", "metadata: this is not JSON"),
    ],
)
def test_a_damaged_file_is_named_with_its_field(text: str, said: str, tmp_path: Path) -> None:
    path = query(tmp_path, {4: ["-"]}, 4)
    (tmp_path / "offsets" / "4").write_text(text)
    with pytest.raises(InputNotRecognizedError) as error:
        read_checkpoints([path], None)
    assert str(tmp_path / "offsets" / "4") in str(error.value)
    assert said in str(error.value)


def test_without_the_batch_before_the_last_the_query_does_not_start(tmp_path: Path) -> None:
    batches = {number: ['{"orders":{"0":5}}'] for number in (4, 5, 7)}
    found = merged(read_checkpoints([query(tmp_path, batches, 4, 5, 7)], "etl"), 15_000)
    assert {each.unusable for each in found} == {
        "offsets/6 is missing before offsets/7: Spark does not start the query"
    }
    answer = evaluate_regions(found, None, region_rules())
    assert [each.latest for each in answer.regions] == [None]


@pytest.mark.parametrize("numbers", [(0,), (4, 5), (4, 6, 7)])
def test_older_batches_may_be_gone(numbers: tuple[int, ...], tmp_path: Path) -> None:
    batches = {number: ['{"orders":{"0":5}}'] for number in numbers}
    found = merged(read_checkpoints([query(tmp_path, batches, *numbers)], "etl"), 15_000)
    assert {each.unusable for each in found} == {None}


def test_a_marker_instead_of_an_offset_is_named(tmp_path: Path) -> None:
    path = query(tmp_path, {0: ['{"orders":{"0":-1,"1":-2}}']}, 0)
    (found,) = merged(read_checkpoints([path], "etl"), 15_000)
    assert [each.missing for each in found.offsets.values()] == [
        "the checkpoint has the marker -1 (the latest offset) instead of an offset of it",
        "the checkpoint has the marker -2 (the earliest offset) instead of an offset of it",
    ]
