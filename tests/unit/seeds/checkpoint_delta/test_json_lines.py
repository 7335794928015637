"""JSON Lines of checkpoints and deltas: as the text prints them, in camel case, and broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from analytics.errors import InputNotRecognizedError
from analytics.seeds.checkpoint_delta.control_segments import ChainLog
from analytics.seeds.checkpoint_delta.inputs import chain_inputs
from tests.support.chain_histories import as_rows
from tests.support.reference_chains import ChainRecord, Range

DELTA = {"GroupId": "G1", "CheckpointEpoch": 1, "BackOffset": 4, "States": []}
EXPECTED = ChainRecord(5, "G1", "delta", 1, 4)


def written(folder: Path, *lines: dict[str, Any] | str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    (folder / "chain.jsonl").write_text("\n".join(texts) + "\n", "utf-8")
    return folder


def only(folder: Path) -> ChainLog:
    (found,) = chain_inputs([str(folder)])
    return found.read()


@pytest.mark.parametrize(
    "line",
    [
        {"offset": 5, "type": 6, "value": DELTA},
        {"offset": 5, "type": "6", "value": DELTA},
        {"offset": 5, "type": "SHARE_DELTA", "value": DELTA},
        {"offset": 5, "type": 6, "topic": "orders", "partition": 2, "value": DELTA},
        {
            "offset": 5,
            "type": 6,
            "value": {"groupId": "G1", "checkpointEpoch": 1, "backOffset": 4, "states": []},
        },
    ],
)
def test_a_delta_in_whatever_form(tmp_path: Path, line: dict[str, Any]) -> None:
    log = only(written(tmp_path / "orders-2", line))
    assert (log.topic, log.partition, log.lost) == ("orders", 2, ())
    assert log.records.equals(as_rows([EXPECTED]))


@pytest.mark.parametrize("state", [2, "2", "2 (Acknowledged)"])
def test_a_state_as_a_number_or_as_the_text_prints_it(tmp_path: Path, state: object) -> None:
    states = [{"BaseOffset": 1, "LastOffset": 3, "State": state, "DeliveryCount": 1}]
    line = {"offset": 5, "type": 6, "value": {**DELTA, "States": states}}
    log = only(written(tmp_path / "orders-2", line))
    expected = ChainRecord(5, "G1", "delta", 1, 4, ranges=(Range(1, 3, 2, 1),))
    assert log.records.equals(as_rows([expected]))


def test_lines_name_partitions_and_files_may_be_packed(tmp_path: Path) -> None:
    lines = [
        {"topic": "a", "partition": number, "offset": 5, "type": 6, "value": DELTA, "topicId": "x"}
        for number in (1, 0)
    ]
    path = tmp_path / "all.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    found = [each.read() for each in chain_inputs([str(path)])]
    assert [(each.topic, each.partition, each.topic_id) for each in found] == [
        ("a", 0, "x"),
        ("a", 1, "x"),
    ]


def test_other_control_records_are_passed_over(tmp_path: Path) -> None:
    marker = {"offset": 4, "type": 1, "value": None}
    log = only(written(tmp_path / "t-0", marker, {"offset": 5, "type": 6, "value": DELTA}))
    assert (log.records.num_rows, log.lost) == (1, ())


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {**DELTA, "CheckpointEpoch": 65536},
        {**DELTA, "CheckpointEpoch": -1},
        {**DELTA, "BackOffset": "4"},
        {**DELTA, "BackOffset": True},
        {**DELTA, "States": None},
        {**DELTA, "States": [{"BaseOffset": 1}]},
        {**DELTA, "States": [7]},
        {**DELTA, "GroupId": None},
    ],
)
def test_what_is_no_value_is_lost_at_its_offset(tmp_path: Path, value: object) -> None:
    log = only(written(tmp_path / "t-0", {"offset": 5, "type": 6, "value": value}))
    assert log.records.num_rows == 0
    assert [(each.first_offset, each.end_offset) for each in log.lost] == [(5, 6)]


def test_a_line_that_tells_nothing_may_be_of_anywhere(tmp_path: Path) -> None:
    """Such as the last one of a file that was cut."""
    good = {"offset": 5, "type": 6, "value": DELTA}
    log = only(written(tmp_path / "t-0", good, '{"offset": 6, "ty'))
    assert log.records.num_rows == 1
    assert log.lost[0].first_offset == 0
    assert "line 2" in log.lost[0].why


def test_lines_that_differ_about_an_offset_are_not_believed(tmp_path: Path) -> None:
    line = {"offset": 5, "type": 6, "value": DELTA}
    other = {"offset": 5, "type": 6, "value": {**DELTA, "BackOffset": 3}}
    log = only(written(tmp_path / "t-0", line, line, other))
    assert log.records.num_rows == 0
    assert [each.first_offset for each in log.lost] == [5]


@pytest.mark.parametrize(
    "text",
    [
        '{"offset": 5, "type": 6, "value": {}}',  # the folder names no partition
        '{"topic": "t", "partition": 0, "type": 6}',
        '{"topic": "t", "partition": 0, "offset": -1, "type": 6}',
        "no json",
        "",
    ],
)
def test_a_file_of_which_no_line_says_where_it_belongs_is_refused(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(InputNotRecognizedError, match="topic and partition"):
        chain_inputs([str(written(tmp_path / "somewhere", text) / "chain.jsonl")])


def test_other_files_of_a_folder_are_left_alone(tmp_path: Path) -> None:
    folder = written(tmp_path / "t-0", {"offset": 5, "type": 6, "value": DELTA})
    (folder / "about.json").write_text('{"what": 1}', "utf-8")
    (folder / "notes.jsonl").write_text("none of ours\n", "utf-8")
    assert only(folder).records.num_rows == 1
