"""What answers take from a snapshot beside its batches: settings, topics, where logs end."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from schemas.snapshot import Setting
from tests.support.recorded_cluster import (
    DESCRIBE_CONFIGS,
    RECORDING,
    Request,
    document,
    recorded_cluster,
    snapshot_of_recording,
)

if TYPE_CHECKING:
    from tests.conftest import Groupscope

RETENTION_MINUTES = "11"
"""As the broker's file had it."""


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, groupscope: Groupscope) -> Path:
    """The recorded cluster's snapshot."""
    return snapshot_of_recording(groupscope, tmp_path_factory.mktemp("snapshot") / "dump")


def test_settings_are_those_of_brokers_and_what_is_set_for_topics_and_groups(taken: Path) -> None:
    snapshot = document(taken)
    (broker,) = snapshot.brokers
    assert broker.configs is not None
    of_broker = {each.name: (each.value, each.source) for each in broker.configs}
    assert of_broker["offsets.retention.minutes"] == (RETENTION_MINUTES, "STATIC_BROKER_CONFIG")
    assert of_broker["offset.metadata.max.bytes"] == ("4096", "DEFAULT_CONFIG")
    assert not any("listeners" in name or "password" in name for name in of_broker)
    own = {each.topic: each.configs for each in snapshot.topics}
    assert Setting("cleanup.policy", "compact", "DYNAMIC_TOPIC_CONFIG") in (
        own["__consumer_offsets"] or []
    )
    assert own["orders"] == [Setting("retention.ms", "3600000", "DYNAMIC_TOPIC_CONFIG")]
    assert own["payments"] == []
    of_groups = {each.group_id: each.configs for each in snapshot.groups}
    of_printers = {each.name: (each.value, each.source) for each in of_groups["printers"] or ()}
    assert of_printers == {
        "share.auto.offset.reset": ("earliest", "DYNAMIC_GROUP_CONFIG"),
        "share.delivery.count.limit": ("7", "DYNAMIC_GROUP_CONFIG"),
    }
    assert None not in of_groups.values()


@pytest.mark.parametrize("is_given", [False, True], ids=["in the dump", "as a file"])
def test_lag_is_told_up_to_where_logs_ended(
    groupscope: Groupscope, taken: Path, is_given: bool
) -> None:
    given = ("--end-offsets", taken / "end-offsets.csv") if is_given else ()
    ran = groupscope("lag", taken, *given, "--format", "json")
    ends = {
        (topic.topic, each.partition): each.log_end_offset
        for topic in document(taken).topics
        for each in topic.partitions
    }
    rows = [each for each in json.loads(ran.stdout)["rows"] if each["log_end_offset"] is not None]
    assert rows
    for each in rows:
        assert each["log_end_offset"] == ends[each["topic"], each["partition"]]
    said = f"logs of data topics end where the cluster answered at {document(taken).taken_at}"
    assert said in ran.stderr


def test_before_the_end_nothing_of_it_counts(groupscope: Groupscope, taken: Path) -> None:
    ended = json.loads(groupscope("list", taken, "--format", "json").stdout)["as_of"]["time"]
    before = datetime.fromisoformat(ended) - timedelta(seconds=2)
    ran = groupscope("lag", taken, "--as-of", before.isoformat(), "--format", "json")
    assert "the cluster answered" not in ran.stderr
    assert all(each["log_end_offset"] is None for each in json.loads(ran.stdout)["rows"])


def test_the_retention_in_force_is_what_the_broker_answered(
    groupscope: Groupscope, taken: Path
) -> None:
    told = json.loads(groupscope("expiration", taken, "--format", "json").stdout)
    in_force = told["retention_in_force"]
    assert in_force["retention_minutes"] == int(RETENTION_MINUTES)
    assert in_force["retention_source"] == "snapshot"
    assert f"as the cluster answered at {document(taken).taken_at}" in told["retention"][0]


def test_limits_of_share_groups_are_those_that_are_set(groupscope: Groupscope, taken: Path) -> None:
    told = json.loads(groupscope("share", taken, "--table", "limits", "--format", "json").stdout)
    sources = {each["source"] for each in told["rows"] if each["source"] is not None}
    assert sources == {"snapshot"}
    own = [each for each in told["rows"] if each["setting"] == "share.delivery.count.limit"]
    assert [each["value"] for each in own] == [7]


def test_topics_have_ids_and_partitions(
    groupscope: Groupscope, taken: Path, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    ran = groupscope("replay", taken, "--out", tmp_path / "state", "--quiet")
    assert ran.returncode == 0, ran.stderr
    rows = pq.read_table(tmp_path / "state" / "state" / "topics").to_pylist()
    named = {(each["topic"], each["topic_id"], each["partitions"]) for each in rows}
    for topic in document(taken).topics:
        assert (topic.topic, topic.topic_id, len(topic.partitions)) in named


def test_a_redacted_workspace_names_no_topic_of_it(
    groupscope: Groupscope, taken: Path, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    out = tmp_path / "redacted"
    ran = groupscope("audit", taken, "--redact", key, "--out", out, "--quiet")
    assert ran.returncode in (0, 1, 3), ran.stderr
    manifest = (out / "manifest.json").read_text()
    (snapshot,) = json.loads(manifest)["snapshots"]
    assert len(snapshot["topics"]) == len(document(taken).topics)
    for each in document(taken).topics:
        assert each.is_internal or f'"{each.topic}"' not in manifest


def with_settings_refused(request: Request, response: bytes) -> bytes:
    """Refuse what is asked of settings, as brokers do without the operation DescribeConfigs."""
    if request.api != DESCRIBE_CONFIGS:
        return response
    from kafka.protocol.admin import DescribeConfigsResponse  # noqa: PLC0415

    tags = 1 if request.version >= 4 else 0
    decoded: Any = DescribeConfigsResponse.decode(response[tags:], version=request.version)
    for each in decoded.results:
        each.error_code = {2: 29, 4: 31, 32: 30}[each.resource_type]
        each.configs = []
    decoded._header = None
    encoded: bytes = decoded.encode(version=request.version)
    return bytes(tags) + encoded


def test_settings_that_may_not_be_described_are_named_and_assumed(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING, with_settings_refused) as address:
        ran = groupscope("snapshot", "--bootstrap-server", address, "--out", out, "--quiet")
    assert ran.returncode == 3
    assert [(each.what, each.reason) for each in document(out).unread] == [
        ("settings of broker 1", "CLUSTER_AUTHORIZATION_FAILED"),
        ("settings of topics", "TOPIC_AUTHORIZATION_FAILED"),
        ("settings of groups", "GROUP_AUTHORIZATION_FAILED"),
    ]
    told = json.loads(groupscope("expiration", out, "--format", "json").stdout)
    assert told["retention_in_force"]["retention_source"] == "default_assumed"


def test_what_another_cluster_answered_is_no_fact_about_a_disk(
    groupscope: Groupscope, taken: Path, failover_dump: Path, tmp_path: Path
) -> None:
    """Its settings were in force, and its ends of logs, where the file lay among logs of others."""
    disk = tmp_path / "broker-2"
    shutil.copytree(failover_dump / "broker-2", disk)
    for name in ("snapshot.json", "cluster-answers-1.arrow"):
        shutil.copyfile(taken / name, disk / name)
    ran = groupscope("expiration", disk, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    assert "offsets.retention.minutes = 10080 (Kafka's default, assumed" in ran.stderr
    looked = groupscope("inspect", disk, "--format", "json")
    (note,) = json.loads(looked.stdout)["notes"]
    assert note["where"] == str(disk / "snapshot.json")
    ours, theirs = "groupscopeLabCluster01", document(taken).cluster_id
    assert note["what"] == f"it is of cluster {theirs}, the logs are of {ours}; not read"


def test_a_snapshot_is_of_its_cluster_without_meta_properties_too(
    groupscope: Groupscope, taken: Path, failover_dump: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "snapshot"
    shutil.copytree(taken, alone)
    (alone / "meta.properties").unlink()
    ran = groupscope("list", failover_dump / "broker-2", alone)
    assert ran.returncode == 2
    assert "log directories of several clusters" in ran.stderr
    assert groupscope("list", alone).returncode == groupscope("list", taken).returncode
