"""A topic that Redpanda wrote is said to be that, by `decode`, `inspect` and the quarantine."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli
from tests.support.log_dirs import LogDir
from tests.support.redpanda import (
    commit_key,
    commit_of_either,
    group_of_redpanda,
    tombstone_behind_length,
)
from tests.support.segments import batch

SAID = "2 records as Redpanda writes them and Kafka does not"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    rows = [
        commit_of_either(0, "g"),
        group_of_redpanda(1, "g", 2),
        tombstone_behind_length(2, commit_key("other")),
        group_of_redpanda(3, "empty", 0),
    ]
    logs = LogDir.create(tmp_path / "logs")
    logs.partition("__consumer_offsets-3", {0: [batch([each]).data for each in rows]})
    return logs.path


def ran(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
    assert result.exception is None, result.stderr
    return result


def test_it_is_named_once_and_no_group_of_it_is_told(dump: Path, tmp_path: Path) -> None:
    space = tmp_path / "space"
    decoded = ran("decode", dump, "--out", space)
    assert decoded.stderr.count(SAID) == 1

    undecoded = pq.read_table(space / "decoded" / "undecoded").to_pylist()
    assert Counter(each["reason"] for each in undecoded) == {
        "redpanda_members": 1,
        "redpanda_key": 1,
    }
    assert (
        "a version before each member" in {each["offset"]: each["detail"] for each in undecoded}[1]
    )
    notes = json.loads(ran("inspect", space, "--format", "json").stdout)["notes"]
    assert [each["what"].startswith(SAID) for each in notes] == [True]

    described = ran("describe", space, "--format", "json")
    assert described.return_value == 3
    assert "a record that cannot be decoded" in described.stderr


def test_headers_and_a_sample_show_it_too(dump: Path) -> None:
    found = json.loads(ran("inspect", dump, "--format", "json").stdout)

    assert [each["what"].startswith(SAID) for each in found["notes"]] == [True]
    assert [each["table"] for each in found["record_types"]] == ["offset_commit", "group_metadata"]
    assert [each["records"] for each in found["record_types"]] == [1, 1]
