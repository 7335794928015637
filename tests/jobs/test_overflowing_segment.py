"""A segment whose offsets no index of it can name is read whole, and named (KAFKA-6264)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli
from schemas import record_type
from tests.support.encoder import encode_key, encode_value
from tests.support.log_dirs import LogDir
from tests.support.segments import NOW, Record, batch

FAR = 2**31 + 5_000
"""Above the base offset of the segment by more than an index entry's four bytes hold."""
NAME = "__consumer_offsets-3/00000000000000000000.log"


def commit(offset: int, partition: int) -> bytes:
    """A batch with one commit of offset 7."""
    kind = record_type("offset_commit")
    key = {"group": "g", "topic": "t", "partition": partition}
    value = {
        "offset": 7,
        "leader_epoch": -1,
        "metadata": "",
        "commit_timestamp": NOW + offset % 1000,
    }
    row = Record(
        offset, NOW + offset % 1000, encode_key(kind, 1, key), encode_value(kind, 3, value)
    )
    return batch([row]).data


@pytest.fixture(params=["last of its log", "followed by another"])
def dump(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Commits of partitions 0, 1 and 2; the later ones far off; cleaned up to all of it."""
    logs = LogDir.create(tmp_path / "logs")
    batches = [commit(0, 0), commit(FAR, 1), commit(FAR + 100, 2)]
    segments = {0: batches}
    if request.param != "last of its log":
        segments[FAR + 200] = [commit(FAR + 200, 3)]
    logs.partition("__consumer_offsets-3", segments)
    logs.checkpoint("cleaner-offset-checkpoint", {"__consumer_offsets-3": FAR + 200})
    return logs.path


def ran(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
    assert result.exception is None, result.stderr
    return result


def test_all_its_commits_are_known(dump: Path, tmp_path: Path) -> None:
    ran("replay", dump, "--out", tmp_path / "out")

    rows = pq.read_table(tmp_path / "out" / "state" / "committed_offsets").to_pylist()
    known = {row["partition"]: (row["record_offset"], row["committed_offset"]) for row in rows}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    (partition,) = manifest["partitions"]
    assert {p: known[p] for p in (0, 1, 2)} == {0: (0, 7), 1: (FAR, 7), 2: (FAR + 100, 7)}
    assert (partition["bytes_damaged"], partition["damages"]) == (0, [])


@pytest.mark.parametrize("checked", [[], ["--check-crc"]])
def test_the_segment_is_named(dump: Path, checked: list[str]) -> None:
    found: dict[str, Any] = json.loads(ran("inspect", dump, *checked, "--format", "json").stdout)

    named = [each["where"] for each in found["notes"] if "KAFKA-6264" in each["what"]]
    assert [each.endswith(NAME) for each in named] == [True]
    assert found["partitions"][0]["bytes_damaged"] == 0
