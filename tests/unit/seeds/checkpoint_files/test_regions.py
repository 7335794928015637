"""Checkpoints of consistent regions as files: rows of operators, and merges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.errors import GroupscopeError, InputNotRecognizedError, InputUnreadableError
from analytics.seeds.region.contributions import CheckpointKey
from analytics.seeds.region.merge import merged
from analytics.seeds.region.recognized import read_checkpoints

ROW: dict[str, Any] = {
    "group_id": "g",
    "region_index": 1,
    "checkpoint_sequence_id": 7,
    "reset_attempt": 0,
    "operator": "A",
    "operators": ["A", "B"],
    "offsets": [
        {"topic": "t", "partition": 1, "offset": 20},
        {"topic": "t", "partition": 0, "offset": 10},
    ],
    "at": 1_700_000_000_000,
}
OTHER = ROW | {"operator": "B", "offsets": [], "at": "2023-11-14T22:13:21Z"}
MERGE: dict[str, Any] = {
    "consolidatedOffsetMap": [
        [{"topic": "t", "partition": 0, "toString": "t-0"}, 10],
        [{"topic": "t", "partition": 1, "toString": "t-1"}, 20],
    ],
    "contributedOperatorNames": ["A", "B"],
    "nExpectedContributions": 3,
    "nContributions": 2,
    "complete": False,
    "key": {"sequenceId": 7, "resetAttempt": -1},
}


def written(folder: Path, text: str, name: str = "checkpoints.jsonl") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def lines(*rows: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in rows)


def test_json_lines_json_and_parquet_say_the_same(tmp_path: Path) -> None:
    rows = [ROW, OTHER | {"at": 1_700_000_001_000}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    paths = [
        written(tmp_path, lines(*rows)),
        written(tmp_path, json.dumps(rows, indent=2), "rows.json"),
        str(tmp_path / "rows.parquet"),
    ]
    first, *others = (read_checkpoints([each], None) for each in paths)
    assert others == [first, first]
    assert [each.operator for each in first] == ["A", "B"]
    assert first[0].offsets == ((("t", 0), 10), (("t", 1), 20))
    assert first[0].key == CheckpointKey("g", "region", None, 7)
    assert [each.at for each in first] == [1_700_000_000_000, 1_700_000_001_000]


def test_contributions_to_one_checkpoint_may_lie_in_several_files(tmp_path: Path) -> None:
    for row in (ROW, OTHER):
        written(tmp_path, json.dumps(row), f"{row['operator']}.json")
    (found,) = merged(read_checkpoints([str(tmp_path)], None), 15_000)
    assert found.is_merged


def test_a_merge_says_who_contributed_and_how_many_should(tmp_path: Path) -> None:
    made = read_checkpoints([written(tmp_path, json.dumps(MERGE), "merge.json")], "g")
    (found,) = merged(made, 15_000)
    assert (found.key.group_id, found.key.form, found.key.sequence_id) == ("g", "merge", 7)
    assert (found.contributors, found.expected, found.is_merged) == (["A", "B"], 3, False)
    assert found.missing == "2 of 3 operators contributed"
    assert [each.offset for each in found.offsets.values()] == [10, 20]


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: each for key, each in row.items() if key != name}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (without(ROW, "operators"), "operators is None"),
        (ROW | {"operator": 5}, "operator is 5"),
        (ROW | {"checkpoint_sequence_id": "7"}, "checkpoint_sequence_id is '7'"),
        (ROW | {"checkpoint_sequence_id": True}, "checkpoint_sequence_id is True"),
        (ROW | {"at": "noon"}, "at is 'noon'"),
        (ROW | {"offsets": {"t-0": 1}}, "offsets is {'t-0': 1}"),
        (
            ROW | {"offsets": [{"topic": "t", "partition": 0, "offset": -5}]},
            "offsets[0]: offset is -5",
        ),
        (ROW | {"offsets": [{"topic": "t", "offset": 5}]}, "offsets[0]: partition is None"),
        (
            ROW | {"offsets": [*ROW["offsets"], {"topic": "t", "partition": 0, "offset": 11}]},
            "offsets[2]: offset is 11",
        ),
        (MERGE | {"key": None}, "key is None"),
        (MERGE | {"consolidatedOffsetMap": [["t-0", 1]]}, "consolidatedOffsetMap[0] is ['t-0', 1]"),
        ({"hello": 1}, "looked for contributions of operators"),
        ([1], "looked for an object"),
    ],
)
def test_what_is_wrong_is_named_with_file_place_and_field(
    row: object, said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, lines(ROW, row))
    with pytest.raises(InputNotRecognizedError) as error:
        read_checkpoints([path], None)
    assert str(error.value).startswith(f"{path}, line 2")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.jsonl", lines(ROW, OTHER)[:-9].encode()),
        ("empty.json", b""),
        ("bad.parquet", b"PAR1 and no more"),
        ("_metadata", b"\x49\x60\x67\x2d"),
        ("random.json", bytes(range(256))),
    ],
)
def test_an_unreadable_file_is_named(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(GroupscopeError, match=name):
        read_checkpoints([str(tmp_path / name)], None)


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputNotRecognizedError, match="no such file or folder"):
        read_checkpoints([str(tmp_path / "gone")], None)
    with pytest.raises(InputNotRecognizedError, match="and found none"):
        read_checkpoints([str(tmp_path)], None)


def test_a_file_that_may_not_be_read_is_told_as_unreadable(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputUnreadableError, match="folder"):
        read_checkpoints([str(tmp_path)], None)
