"""`groupscope replay` as a person runs it: a dump first, then the workspace it left."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from schemas import tables

if TYPE_CHECKING:
    from tests.conftest import Groupscope

PARTITIONS = (
    "__consumer_offsets-2",
    "__consumer_offsets-6",
    "__consumer_offsets-8",
    "__consumer_offsets-9",
    "__share_group_state-0",
)
CUT_PARTITION = 9
CUT = f"__consumer_offsets:{CUT_PARTITION}:100"


@pytest.fixture(scope="module")
def dump(failover_dump: Path) -> list[Path]:
    return [failover_dump / "broker-2" / each for each in PARTITIONS]


@pytest.fixture(scope="module")
def workspace(
    groupscope: Groupscope, dump: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What a replay of a few partitions leaves."""
    out = tmp_path_factory.mktemp("replay") / "out"
    result = groupscope("replay", *dump, "--out", out)
    assert result.returncode == 0, result.stderr
    assert "as of the end of the dump" in result.stdout
    return out


def rows_of(workspace: Path, table: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(
        workspace / "state" / table, partitioning=None
    ).to_pylist()
    return rows


def digests(workspace: Path) -> dict[str, list[str]]:
    """What every table's files hold, whatever they are called."""
    found: dict[str, list[str]] = {}
    for kind in ("decoded", "state", "history"):
        for part in sorted((workspace / kind).rglob("*.parquet")):
            table = f"{kind}/{part.parent.name}"
            found.setdefault(table, []).append(hashlib.sha256(part.read_bytes()).hexdigest())
    return {table: sorted(each) for table, each in found.items()}


def test_neither_the_order_of_inputs_nor_another_run_changes_a_byte(
    groupscope: Groupscope, dump: list[Path], workspace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    result = groupscope("replay", *dump[::-1], "--out", out)
    assert result.returncode == 0, result.stderr
    told = digests(workspace)
    assert {"state/committed_offsets", "state/share_partitions", "state/groups"} <= set(told)
    assert digests(out) == told


def test_every_state_table_has_the_columns_of_its_contract(workspace: Path) -> None:
    contracts = {name: each for name, each in tables().items() if each.kind == "state"}
    assert {each.name for each in (workspace / "state").iterdir()} == set(contracts)
    for name, contract in contracts.items():
        found = pq.read_schema(next((workspace / "state" / name).glob("*.parquet")))
        assert found.names == [column.name for column in contract.columns], name


def test_the_tables_are_sorted_by_key(workspace: Path) -> None:
    keys = [
        (row["group_id"], row["topic"], row["partition"])
        for row in rows_of(workspace, "committed_offsets")
    ]
    assert keys
    assert keys == sorted(keys)


def test_a_workspace_is_replayed_at_another_instant_without_decoding_again(
    groupscope: Groupscope, workspace: Path, tmp_path: Path
) -> None:
    decoded = {each: each.stat().st_mtime_ns for each in workspace.glob("decoded/*/*.parquet")}
    out = tmp_path / "out"
    out.mkdir()
    stale = {"evaluations": {"rebalances": {}}} | json.loads(
        (workspace / "manifest.json").read_text("utf-8")
    )
    (out / "manifest.json").write_text(json.dumps(stale), "utf-8")
    (out / "evaluations").mkdir()
    arguments = ("--as-of-offset", CUT, "--format", "json")
    result = groupscope("replay", workspace, "--out", out, *arguments)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    ends = {f"__consumer_offsets-{CUT_PARTITION}": 100}
    assert (answer["as_of"]["is_end"], answer["as_of"]["offsets"]) == (False, ends)
    assert answer["as_of"]["time"].endswith("Z")
    counts = {each["table"]: each["rows"] for each in answer["rows"]}
    assert counts["committed_offsets"] == len(rows_of(out, "committed_offsets"))
    offsets = [
        row["record_offset"]
        for row in rows_of(out, "committed_offsets")
        if row["coordinator_partition"] == CUT_PARTITION
    ]
    assert offsets
    assert all(each < 100 for each in offsets)  # type: ignore[operator]
    assert {each: each.stat().st_mtime_ns for each in decoded} == decoded
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    assert manifest["replay"]["as_of"] == {"time": None, "offsets": ends}
    # What had been evaluated there was of another replay.
    assert "evaluations" not in manifest
    assert not (out / "evaluations").exists()


@pytest.mark.parametrize("place", ["9:100", "__consumer_offsets:9", "__consumer_offsets:x:1"])
def test_an_instant_that_is_none_is_refused(
    groupscope: Groupscope, dump: list[Path], tmp_path: Path, place: str
) -> None:
    result = groupscope("replay", *dump, "--out", tmp_path / "out", "--as-of-offset", place)
    assert result.returncode == 2
    assert "TOPIC:PARTITION:OFFSET" in result.stderr


OF_DECODING = (
    ("--prefer-copy", "broker-1"),
    ("--strict-high-watermark",),
    ("--topic-partition", "__consumer_offsets-9"),
    ("--value-encoding", "hex"),
)


@pytest.mark.parametrize("option", OF_DECODING, ids=" ".join)
@pytest.mark.parametrize("command", ["replay", "list", "inspect"])
def test_what_says_how_logs_are_read_is_no_option_of_a_workspace(
    groupscope: Groupscope, failover_workspace: Path, command: str, option: tuple[str, ...]
) -> None:
    """It changed nothing, and nobody was told: the other copy's line looked like this one."""
    ran = groupscope(command, failover_workspace, *option)
    assert ran.returncode == 2
    assert f"is decoded already: {' '.join(option)} needs the dump" in ran.stderr
    assert not ran.stdout


def test_what_a_workspace_was_decoded_with_may_be_said_again(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = ("--prefer-copy", "broker-1", "--strict-high-watermark")
    assert groupscope("replay", failover_dump, *options, "--out", out).returncode == 0
    ran = groupscope("list", out, *options)
    assert ran.returncode == 0, ran.stderr
