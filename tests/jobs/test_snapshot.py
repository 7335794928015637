"""`snapshot` against answers that a real broker gave, and against some that none gives."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analytics.snapshot.taking import Limits, take_snapshot
from tests.brokers.record_snapshot import SMALL_BYTES
from tests.support.recorded_cluster import (
    API_VERSIONS,
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    FETCH,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    RECORDING,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_OFFSETS,
    STREAMS_GROUP_DESCRIBE,
    Change,
    Request,
    connected_to_recording,
    document,
    recorded_cluster,
    snapshot_of_recording,
)

if TYPE_CHECKING:
    from datetime import datetime

    from tests.conftest import Groupscope

PARTITIONS = {"__consumer_offsets": 5, "__share_group_state": 3, "__transaction_state": 3}
UNFINISHED = ".unfinished-snapshot"


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, groupscope: Groupscope) -> Path:
    """The recorded cluster's snapshot."""
    return snapshot_of_recording(groupscope, tmp_path_factory.mktemp("snapshot") / "dump")


def logs_of(out: Path) -> dict[str, bytes]:
    """Each partition's batches."""
    return {
        folder.name: b"".join(each.read_bytes() for each in sorted(folder.glob("*.log")))
        for folder in sorted(out.glob("__*"))
    }


# --- what is taken ----------------------------------------------------------------------------


def test_every_partition_of_the_internal_topics_is_there(taken: Path) -> None:
    names = [f"{topic}-{each}" for topic, count in PARTITIONS.items() for each in range(count)]
    assert sorted(logs_of(taken)) == names


def test_it_says_what_the_cluster_is(taken: Path) -> None:
    snapshot = document(taken)
    assert snapshot.cluster_id == "groupscope-brokers-00A"
    assert [each.node_id for each in snapshot.brokers] == [1]
    assert {each.topic for each in snapshot.topics} >= {*PARTITIONS, "orders", "payments"}
    assert {each.group_type for each in snapshot.groups} == {
        "classic", "consumer", "share", "streams",
    }  # fmt: skip
    assert snapshot.unread == []
    assert (taken / "meta.properties").read_text() == "cluster.id=groupscope-brokers-00A\n"


def test_the_document_is_printed_too(groupscope: Groupscope, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING) as address:
        ran = groupscope(
            "snapshot", "--bootstrap-server", address, "--out", out, "--format", "json"
        )
    printed = json.loads(ran.stdout)
    differences = printed.pop("cluster_differences")
    assert printed == json.loads((out / "snapshot.json").read_bytes())
    verdicts = [each["verdict"] for each in differences["rows"]]
    assert differences["verdicts"] == {
        name: verdicts.count(name) for name in ("contradicts", "explained", "cannot_tell")
    }
    assert (differences["cannot_tell"], differences["gaps"]) == ([], [])


def test_what_was_not_held_against_the_cluster_has_no_differences(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    with recorded_cluster(RECORDING) as address:
        ran = groupscope(
            "snapshot", "--bootstrap-server", address, "--out", tmp_path / "out",
            "--no-check", "--format", "json",
        )  # fmt: skip
    assert json.loads(ran.stdout)["cluster_differences"] is None


def test_each_log_says_how_far_it_goes(taken: Path) -> None:
    of_bytes = {name: len(content) for name, content in logs_of(taken).items()}
    snapshot = document(taken)
    assert {f"{each.topic}-{each.partition}": each.bytes for each in snapshot.logs} == of_bytes
    assert all(each.next_offset == each.log_end_offset for each in snapshot.logs)
    # The coordinator deletes share state that is superseded: its logs are cut, not compacted.
    cleaned = {each.topic for each in snapshot.logs if each.has_gaps}
    assert cleaned == {"__consumer_offsets", "__transaction_state"}


def test_batches_are_cut_by_small_answers_and_come_whole_all_the_same(
    taken: Path, tmp_path: Path
) -> None:
    out = tmp_path / "small"
    with connected_to_recording() as cluster:
        reader = Limits(fetch_bytes=SMALL_BYTES).reader(cluster)
        take_snapshot(cluster, out, clock, lambda _: None, reader)
    assert logs_of(out) == logs_of(taken)


@pytest.mark.parametrize("parallel", [pytest.param("1", marks=pytest.mark.long), "32"])
def test_however_many_logs_are_read_at_once_they_are_the_same(
    groupscope: Groupscope, taken: Path, tmp_path: Path, parallel: str
) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING) as address:
        ran = groupscope(
            "snapshot", "--bootstrap-server", address, "--out", out,
            "--parallel", parallel, "--no-check",
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert logs_of(out) == logs_of(taken)
    assert [each.partition for each in document(out).logs] == [
        each.partition for each in document(taken).logs
    ]


def clock() -> datetime:
    from datetime import UTC, datetime  # noqa: PLC0415

    return datetime(2026, 11, 27, tzinfo=UTC)


def test_commands_answer_to_it_at_its_end(groupscope: Groupscope, taken: Path) -> None:
    listed = groupscope("list", taken, "--format", "json")
    assert listed.returncode == 0, listed.stderr
    names = {each["group_id"] for each in json.loads(listed.stdout)["rows"]}
    # A classic group without members and offsets is gone from the log as it will be from memory.
    assert names
    assert names <= {each.group_id for each in document(taken).groups}


def test_gaps_of_a_log_that_its_leader_sent_whole_are_the_cleaners(
    groupscope: Groupscope, taken: Path
) -> None:
    shown = json.loads(groupscope("inspect", taken, "--format", "json").stdout)
    kinds = {gap["kind"] for each in shown["partitions"] for gap in each["gaps"]}
    assert kinds == {"compaction"}
    # How far the cleaner came nobody tells: history below the end is not complete.
    has_gaps = {(each.topic, each.partition): each.has_gaps for each in document(taken).logs}
    assert set(has_gaps.values()) == {True, False}
    for each in shown["partitions"]:
        is_compacted = has_gaps[each["topic"], each["partition"]]
        start = each["end_offset"] if is_compacted else each["log_start_offset"]
        assert each["complete_from"] == start
        assert each["first_dirty_offset"] is None


def test_where_a_segment_was_lost_since_gaps_say_nothing_of_the_cleaner(
    groupscope: Groupscope, taken: Path, tmp_path: Path
) -> None:
    import shutil  # noqa: PLC0415

    harmed = tmp_path / "harmed"
    shutil.copytree(taken, harmed)
    (segment,) = (harmed / "__consumer_offsets-1").glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-100])
    shown = json.loads(groupscope("inspect", harmed, "--format", "json").stdout)
    kinds = {
        each["partition"]: {gap["kind"] for gap in each["gaps"]}
        for each in shown["partitions"]
        if each["topic"] == "__consumer_offsets"
    }
    assert "unknown" in kinds[1]
    assert kinds[0] == {"compaction"}


# --- what is refused --------------------------------------------------------------------------


def test_a_folder_that_holds_something_is_left_alone(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    ran = groupscope("snapshot", "--bootstrap-server", "127.0.0.1:1", "--out", tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "is not empty: a snapshot needs a folder of its own" in ran.stderr


@pytest.mark.parametrize("server", ["broker", "broker:", "broker:http", "broker:99999", ","])
def test_an_address_has_host_and_port(groupscope: Groupscope, tmp_path: Path, server: str) -> None:
    ran = groupscope("snapshot", "--bootstrap-server", server, "--out", tmp_path / "out")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "looked for HOST:PORT, several with commas" in ran.stderr


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("name", ["silent", "closed"])
def test_a_bootstrap_that_does_not_answer_is_one_line(
    groupscope: Groupscope, request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    address = request.getfixturevalue(name)
    out = tmp_path / "out"
    ran = groupscope("snapshot", "--bootstrap-server", address, "--out", out, "--timeout", "1")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert f"{address}: no broker answered within 1 seconds" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert [*tmp_path.iterdir()] == []


def test_secrets_are_in_no_message(groupscope: Groupscope, tmp_path: Path, closed: str) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nclient.id=mine\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="auditor" password="hunter2";\n'
    )
    ran = groupscope(
        "snapshot", "--bootstrap-server", closed, "--command-config", config,
        "--out", tmp_path / "out", "--timeout", "1", "--verbose",
    )  # fmt: skip
    assert ran.returncode == 3
    assert "not used here: client.id" in ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr


def test_a_snapshot_that_never_ended_is_no_dump(
    groupscope: Groupscope, taken: Path, tmp_path: Path
) -> None:
    import shutil  # noqa: PLC0415

    left = tmp_path / ".dump.unfinished"
    shutil.copytree(taken, left)
    (left / UNFINISHED).touch()
    ran = groupscope("inspect", left)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "a snapshot of a cluster that never came to its end" in ran.stderr
    # Nor one among others.
    ran = groupscope("inspect", tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")


# --- answers that no broker gives -------------------------------------------------------------

_BASE_OFFSET, _SIZE_AT, _MAGIC_AT, _DELTA_AT = 0, 8, 16, 23


def in_records(at: int, value: bytes) -> Change:
    """Change bytes of the first batch of each fetch."""

    def change(request: Request, response: bytes) -> bytes:
        begin = records_at(request, response)
        if begin is None:
            return response
        return response[: begin + at] + value + response[begin + at + len(value) :]

    return change


def records_at(request: Request, response: bytes) -> int | None:
    """Where the batches of a FetchResponse begin; null where it has none."""
    if request.api != FETCH:
        return None
    from kafka.protocol.consumer import FetchResponse  # noqa: PLC0415

    decoded = FetchResponse.decode(response, version=request.version)
    records = decoded.responses[0].partitions[0].records
    return response.index(records) if records else None


def of_api(api: int, make: Callable[[bytes], bytes | None]) -> Change:
    return lambda request, response: make(response) if request.api == api else response


FOREIGN: dict[str, Change] = {
    "a batch of no size": in_records(_SIZE_AT, struct.pack(">i", 0)),
    "a batch of negative size": in_records(_SIZE_AT, struct.pack(">i", -1)),
    "a batch larger than memory": in_records(_SIZE_AT, struct.pack(">i", 2**31 - 1)),
    "a batch larger than the answer": in_records(_SIZE_AT, struct.pack(">i", 1 << 20)),
    "an unknown format": in_records(_MAGIC_AT, b"\x07"),
    "an offset below those before": in_records(_BASE_OFFSET, struct.pack(">q", -5)),
    "an offset far away": in_records(_BASE_OFFSET, struct.pack(">q", 2**63 - 1)),
    "a last offset below the first": in_records(_DELTA_AT, struct.pack(">i", -2)),
    "half of a fetch": of_api(FETCH, lambda answer: answer[: len(answer) // 2]),
    "a fetch of nothing": of_api(FETCH, lambda _: b""),
    "a fetch that cuts the connection": of_api(FETCH, lambda _: None),
    "a fetch of zeros": of_api(FETCH, lambda answer: bytes(len(answer))),
    "a fetch of ones": of_api(FETCH, lambda answer: b"\xff" * len(answer)),
    "half of the topics": of_api(METADATA, lambda answer: answer[: len(answer) // 2]),
    "topics of ones": of_api(METADATA, lambda answer: b"\xff" * len(answer)),
    "half of the versions": of_api(API_VERSIONS, lambda answer: answer[: len(answer) // 2]),
    "half of the offsets": of_api(LIST_OFFSETS, lambda answer: answer[: len(answer) // 2]),
    "offsets of ones": of_api(LIST_OFFSETS, lambda answer: b"\xff" * len(answer)),
    "half of the groups": of_api(LIST_GROUPS, lambda answer: answer[: len(answer) // 2]),
    "groups of zeros": of_api(LIST_GROUPS, lambda answer: bytes(len(answer))),
    "no groups": of_api(LIST_GROUPS, lambda _: None),
    "half of the settings": of_api(DESCRIBE_CONFIGS, lambda answer: answer[: len(answer) // 2]),
    "settings of ones": of_api(DESCRIBE_CONFIGS, lambda answer: b"\xff" * len(answer)),
    "no settings": of_api(DESCRIBE_CONFIGS, lambda _: None),
    "half of the offsets of groups": of_api(OFFSET_FETCH, lambda answer: answer[:9]),
    "offsets of groups of ones": of_api(OFFSET_FETCH, lambda answer: b"\xff" * len(answer)),
    "no classic group": of_api(DESCRIBE_GROUPS, lambda _: None),
    "half of a consumer group": of_api(CONSUMER_GROUP_DESCRIBE, lambda answer: answer[:40]),
    "consumer groups of zeros": of_api(CONSUMER_GROUP_DESCRIBE, lambda answer: bytes(len(answer))),
    "share groups of ones": of_api(SHARE_GROUP_DESCRIBE, lambda answer: b"\xff" * len(answer)),
    "half of a streams group": of_api(STREAMS_GROUP_DESCRIBE, lambda answer: answer[:60]),
    "no start of a share partition": of_api(SHARE_GROUP_OFFSETS, lambda _: None),
}


ALIKE = {
    "a batch of negative size",
    "a batch larger than the answer",
    "an offset below those before",
    "a fetch of nothing",
    "a fetch of ones",
    "half of the topics",
    "offsets of ones",
    "half of the groups",
    "no groups",
    "half of the settings",
    "no settings",
    "offsets of groups of ones",
    "half of a consumer group",
}
"""Those of which quick ones have the question and the kind of bytes, in other pairs."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked again is asked at once, and groups and ends of logs once only."""
    for name in ("log_reading", "cluster_description", "group_answers"):
        monkeypatch.setattr(f"analytics.snapshot.{name}._BETWEEN", 0.01)
    for name in ("cluster_description", "group_answers"):
        monkeypatch.setattr(f"analytics.snapshot.{name}._TRIES", 2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.long if each in ALIKE else ()) for each in FOREIGN],
)
def test_foreign_bytes_are_told_in_a_line(
    groupscope: Groupscope, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING, FOREIGN[name]) as address:
        ran = groupscope(
            "snapshot", "--bootstrap-server", address, "--out", out, "--timeout", "0.2", "--quiet"
        )
    assert ran.returncode == 3, ran.stderr
    # What could not be read is one line; others say what cannot be held against the cluster so.
    doubts = [each for each in ran.stderr.splitlines() if "cannot tell: " in each]
    others = [each for each in ran.stderr.splitlines() if each not in doubts]
    assert "internal error" not in ran.stderr
    assert len(others) == int(not out.exists() or bool(document(out).unread)), ran.stderr
    assert doubts or others
    assert sorted(tmp_path.iterdir()) == ([out] if out.exists() else [])


def refusing(topic: str, code: int) -> Change:
    """Answer fetches of a topic with an error."""

    def change(request: Request, response: bytes) -> bytes:
        if request.api != FETCH:
            return response
        from kafka.protocol.consumer import FetchResponse  # noqa: PLC0415

        decoded: Any = FetchResponse.decode(response, version=request.version)
        (answered,) = decoded.responses
        if answered.topic != topic:
            return response
        answered.partitions[0].error_code = code
        answered.partitions[0].records = None
        decoded._header = None
        encoded: bytes = decoded.encode(version=request.version)
        return encoded

    return change


def test_a_topic_that_may_not_be_read_is_named_and_the_others_are_taken(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING, refusing("__transaction_state", 29)) as address:
        ran = groupscope("snapshot", "--bootstrap-server", address, "--out", out, "--quiet")
    assert ran.returncode == 3
    assert "not read: __transaction_state (TOPIC_AUTHORIZATION_FAILED)" in ran.stderr
    assert [each.what for each in document(out).unread] == ["__transaction_state"]
    # What reads the snapshot knows that records are missing up to where the log ended.
    shown = json.loads(groupscope("inspect", out, "--format", "json").stdout)
    losses = {(each["topic"], each["partition"]): each["losses"] for each in shown["partitions"]}
    assert all(losses["__transaction_state", each] for each in range(3))
    assert not any(losses["__consumer_offsets", each] for each in range(5))


@pytest.mark.usefixtures("impatient")
def test_a_log_whose_leader_keeps_changing_is_given_up(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with recorded_cluster(RECORDING, refusing("__transaction_state", 74)) as address:
        ran = groupscope("snapshot", "--bootstrap-server", address, "--out", out, "--quiet")
    assert ran.returncode == 3
    assert "it changed 5 times while it was read (FENCED_LEADER_EPOCH)" in ran.stderr


def test_a_folder_of_a_store_is_refused(groupscope: Groupscope) -> None:
    ran = groupscope("snapshot", "--bootstrap-server", "b:1", "--out", "s3://bucket/dump")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "a folder of this machine is needed" in ran.stderr


def test_without_the_client_library_it_says_what_to_install(
    groupscope: Groupscope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    monkeypatch.setattr("jobs.cli.main.check_one_root", lambda: None)
    ran = groupscope("snapshot", "--bootstrap-server", "b:1", "--out", tmp_path / "out")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "pip install 'kafka-python>=3.0.12,<4'" in ran.stderr
