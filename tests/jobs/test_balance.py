"""`groupscope balance` and `groupscope rebalances` as a person runs them, on three real groups."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from schemas import table

if TYPE_CHECKING:
    from tests.conftest import Groupscope

STORY = Path("tests/data/dumps/kafka-4.3.1-story/broker-1")
FLAPPING = Path("examples/flapping-indexer/broker-1/__consumer_offsets-31")
OF_STORY = ("__consumer_offsets-34", "__consumer_offsets-10", "__cluster_metadata-0")
"""Where idle-members and ledger-rr live, and what tells how many partitions topics have."""

PARTITIONS_ARE_ABSENT = 3
"""All groups are asked about, and most partitions of the topic are not in this dump."""

Row = Mapping[str, Any]


@pytest.fixture(scope="module")
def dump(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    broker = tmp_path_factory.mktemp("dump") / "broker-1"
    for name in OF_STORY:
        shutil.copytree(repository / STORY / name, broker / name)
    shutil.copytree(repository / FLAPPING, broker / FLAPPING.name)
    for name in ("meta.properties", "cleaner-offset-checkpoint"):
        shutil.copy(repository / STORY / name, broker)
    return broker


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace") / "out"


@pytest.fixture(scope="module")
def rebalances(groupscope: Groupscope, dump: Path, workspace: Path) -> dict[str, Any]:
    run = groupscope("rebalances", dump, "--out", workspace, "--format", "json")
    assert run.returncode == PARTITIONS_ARE_ABSENT, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


@pytest.fixture(scope="module")
def history(
    groupscope: Groupscope, rebalances: dict[str, Any], workspace: Path
) -> dict[str, list[Row]]:
    assert rebalances["rows"]
    run = groupscope("balance", workspace, "--history", "--format", "json")
    assert run.returncode == PARTITIONS_ARE_ABSENT, run.stderr
    found: dict[str, list[Row]] = {}
    for row in sorted(json.loads(run.stdout)["rows"], key=lambda row: str(row["from_timestamp"])):
        found.setdefault(row["group_id"], []).append(row)
    return found


def test_the_storm_is_named(rebalances: dict[str, Any]) -> None:
    (storm,) = rebalances["storms"]
    assert (storm["group_id"], storm["epochs"]) == ("flapping-indexer", 15)
    assert len(storm["members_involved"]) == 15
    assert rebalances["storm"] == {"epochs": 10, "minutes": 10.0}
    assert "not recorded" in rebalances["not_recorded"]
    churn = {row["group_id"]: row["epochs"] for row in rebalances["churn"]}
    assert churn == {"flapping-indexer": 15, "idle-members": 2, "ledger-rr": 1}


def test_a_table_that_is_asked_for_is_shown_without_rows_too(
    groupscope: Groupscope, rebalances: dict[str, Any], workspace: Path
) -> None:
    assert rebalances["standing"] == []
    asked = ("--group", "flapping-indexer", "--table", "standing", "--quiet")
    run = groupscope("rebalances", workspace, *asked)
    assert run.returncode == 0, run.stderr
    assert "GROUP  WHAT  MEMBER  SINCE  DETAIL" in run.stdout


def test_what_led_to_epochs_is_told(rebalances: dict[str, Any]) -> None:
    causes: dict[str, list[str]] = {}
    for row in rebalances["causes"]:
        causes.setdefault(row["group_id"], []).append(row["cause"])
    grown = {group for group, found in causes.items() if "topic_grew" in found}
    assert grown == {"idle-members"}
    assert causes["idle-members"].count("topic_grew") == 1
    assert set(causes["flapping-indexer"]) <= {
        *("members_changed", "leader_lost", "coordinator_changed", "not_synced", "none_recorded"),
    }


def test_evaluations_are_kept_in_the_workspace(rebalances: dict[str, Any], workspace: Path) -> None:
    for name in ("rebalances", "group_churn", "rebalance_storms", "rebalance_causes"):
        kept = pq.read_table(workspace / "evaluations" / name, partitioning=None)
        assert kept.column_names == [column.name for column in table(name).columns]
    assert len(rebalances["rows"]) == 18
    manifest = json.loads((workspace / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["evaluations"]["rebalances"]["rows"] == 18


def test_idle_members_are_forced_until_their_topic_grows(history: dict[str, list[Row]]) -> None:
    told = [
        (row["verdict"], row["forced"], row["idle_members"], row["unassigned_partitions"])
        for row in history["idle-members"]
    ]
    assert told == [("forced", True, 3, 0), ("unread", False, 3, 3), ("even", False, 0, 0)]


def test_an_uneven_group_is_avoidable(history: dict[str, list[Row]]) -> None:
    (row,) = history["ledger-rr"]
    assert (row["min_partitions"], row["max_partitions"]) == (3, 11)
    assert (row["verdict"], row["forced"]) == ("avoidable", False)
    assert "6 to 8 each would be possible" in row["cause"]


@pytest.mark.long
def test_an_instant_in_between_is_judged_as_text(
    groupscope: Groupscope, rebalances: dict[str, Any], workspace: Path
) -> None:
    assert rebalances["rows"]
    instant = ("--as-of", "2026-11-21T09:12:30Z", "--group", "idle-members")
    run = groupscope("balance", workspace, *instant)
    assert run.returncode == 0, run.stderr
    assert "unread" in run.stdout
    cause = "nobody has events-idle 2-4: maybe the topic grew after partitions were assigned"
    assert cause in " ".join(run.stdout.split())
