"""Checkpoints of Flink, Hudi and Iceberg."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from analytics.errors import InputNotRecognizedError
from analytics.seeds.region.merge import Checkpoint, merged
from analytics.seeds.region.recognized import read_checkpoints


def checkpoints(path: Path, group: str | None = None) -> list[Checkpoint]:
    return merged(read_checkpoints([str(path)], group), 15_000)


def offsets(each: Checkpoint) -> dict[str, int | None]:
    return {f"{topic}-{number}": one.offset for (topic, number), one in each.offsets.items()}


def refused(path: Path, group: str | None = None) -> str:
    with pytest.raises(InputNotRecognizedError) as error:
        read_checkpoints([str(path)], group)
    return str(error.value)


# --- Flink -------------------------------------------------------------------------------------


def subtask(number: int, splits: dict[int, int], **more: Any) -> dict[str, Any]:
    return {
        "uid": "orders-source",
        "subtask": number,
        "parallelism": 2,
        "splits": [
            {"topic": "orders", "partition": each, "startingOffset": offset}
            for each, offset in splits.items()
        ],
    } | more


def flink(folder: Path, *subtasks: dict[str, Any], **more: Any) -> Path:
    path = folder / "export.json"
    document = {
        "checkpoint_id": 12,
        "checkpoint_timestamp": 1_700_000_000_000,
        "group_id": "etl",
        "operators": list(subtasks),
    }
    path.write_text(json.dumps(document | more))
    return path


def test_subtasks_of_a_flink_source_contribute_their_splits(tmp_path: Path) -> None:
    (found,) = checkpoints(flink(tmp_path, subtask(0, {0: 5}), subtask(1, {1: 6})))
    assert (found.key.group_id, found.key.sequence_id, found.is_merged) == ("etl", 12, True)
    assert offsets(found) == {"orders-0": 5, "orders-1": 6}


def test_a_subtask_that_is_missing_is_named(tmp_path: Path) -> None:
    (found,) = checkpoints(flink(tmp_path, subtask(1, {1: 6})))
    assert found.missing == "orders-source/0 did not contribute"


def test_a_split_that_was_not_yet_read_has_no_offset(tmp_path: Path) -> None:
    (found,) = checkpoints(flink(tmp_path, subtask(0, {0: -2}), subtask(1, {})))
    assert offsets(found) == {"orders-0": None}
    assert found.missing == "offsets of 1 partitions cannot be told"


def test_a_checkpoint_that_failed_is_not_complete(tmp_path: Path) -> None:
    path = flink(tmp_path, subtask(0, {}), subtask(1, {}), completed=False)
    assert not checkpoints(path)[0].is_merged


def test_a_wrong_field_of_an_export_is_named(tmp_path: Path) -> None:
    said = refused(flink(tmp_path, subtask(0, {0: -4})))
    assert "operators[0], splits[0]: startingOffset is -4" in said


# --- Hudi --------------------------------------------------------------------------------------


def hudi(folder: Path, name: str, extra: dict[str, str], *, avro: bool = False) -> Path:
    document = {"operationType": "UPSERT", "extraMetadata": extra}
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not avro:
        path.write_text(json.dumps(document))
        return path
    fields = [
        {"name": "operationType", "type": "string"},
        {"name": "extraMetadata", "type": {"type": "map", "values": "string"}},
    ]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "Commit", "fields": fields}, [document])
    path.write_bytes(out.getvalue())
    return path


V1, V2 = "deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"


def test_commits_of_a_hudi_table_have_the_streamers_checkpoint(tmp_path: Path) -> None:
    hudi(tmp_path, ".hoodie/20261121091000123.commit", {V1: "orders,0:5,1:7"})
    hudi(tmp_path, ".hoodie/20261121092000123.deltacommit", {V1: "orders,0:9,1:8"})
    hudi(tmp_path, ".hoodie/20261121093000123.commit", {"schema": "{}"})
    hudi(tmp_path, ".hoodie/20261121094000123.commit.requested", {V1: "orders,0:99"})
    (tmp_path / ".hoodie" / "20261121095000123.inflight").write_text("")
    found = checkpoints(tmp_path, "etl")
    assert [each.key.sequence_id for each in found] == [20261121091000123, 20261121092000123]
    assert [offsets(each) for each in found] == [
        {"orders-0": 5, "orders-1": 7},
        {"orders-0": 9, "orders-1": 8},
    ]
    assert found[0].made_at == 1_795_252_200_123


def test_a_timeline_of_hudi_1_is_avro(tmp_path: Path) -> None:
    name = ".hoodie/timeline/20261121091000123_20261121091005000.commit"
    hudi(tmp_path, name, {V2: "orders,0:5"}, avro=True)
    assert [offsets(each) for each in checkpoints(tmp_path)] == [{"orders-0": 5}]


@pytest.mark.parametrize("value", ["orders", "20261121091000123", "1758440000000"])
def test_a_commit_of_another_source_is_named_and_the_others_are_read(
    value: str, tmp_path: Path
) -> None:
    path = hudi(tmp_path, ".hoodie/20261121091000123.commit", {V1: value})
    hudi(tmp_path, ".hoodie/20261121092000123.commit", {V1: "orders,0:5"})
    remarks: list[str] = []
    found = merged(read_checkpoints([str(tmp_path)], None, remarks), 15_000)
    assert [offsets(each) for each in found] == [{"orders-0": 5}]
    (remark,) = remarks
    assert remark.startswith(f"{path}: {V1} is '{value}', the checkpoint of another source than")


def test_commits_that_are_given_one_by_one_are_of_one_table(tmp_path: Path) -> None:
    paths = [
        hudi(tmp_path, f".hoodie/2026112109{minute}00123.commit", {V1: f"orders,0:{minute}"})
        for minute in (20, 10)
    ]
    found = merged(read_checkpoints([str(each) for each in paths], None), 15_000)
    assert len({each.key.of_all for each in found}) == 1
    assert [offsets(each) for each in found] == [{"orders-0": 10}, {"orders-0": 20}]


@pytest.mark.parametrize("value", ["orders,0", "orders,a:5"])
def test_a_damaged_checkpoint_of_kafka_is_named(value: str, tmp_path: Path) -> None:
    path = hudi(tmp_path, "20261121091000123.commit", {V1: value})
    assert f"{path}, extraMetadata: {V1} is '{value}'" in refused(path)


def test_a_damaged_avro_file_is_named(tmp_path: Path) -> None:
    path = hudi(tmp_path, "20261121091000123.commit", {V2: "orders,0:5"}, avro=True)
    path.write_bytes(path.read_bytes()[:40])
    assert str(path) in refused(path)


# --- Iceberg -----------------------------------------------------------------------------------


def iceberg(folder: Path, *summaries: dict[str, str], name: str = "v2.metadata.json") -> Path:
    document = {
        "format-version": 2,
        "snapshots": [
            {
                "snapshot-id": 900 - number,
                "sequence-number": number,
                "timestamp-ms": 1_700_000_000_000 + number,
                "summary": {"operation": "append"} | summary,
            }
            for number, summary in enumerate(summaries, 1)
        ],
    }
    path = folder / "metadata" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if ".gz" in name else data)
    return path


KEY = "kafka.connect.offsets.control-iceberg.connect-sink"


@pytest.mark.parametrize("name", ["v2.metadata.json", "00002-aa.gz.metadata.json"])
def test_snapshots_of_an_iceberg_table_have_offsets_of_the_control_topic(
    name: str, tmp_path: Path
) -> None:
    iceberg(tmp_path, {KEY: '{"0":5}'}, {}, {KEY: '{"0":9}'}, name=name)
    found = checkpoints(tmp_path)
    assert [each.key.sequence_id for each in found] == [1, 3]
    assert [offsets(each) for each in found] == [{"control-iceberg-0": 5}, {"control-iceberg-0": 9}]
    assert {each.key.group_id for each in found} == {"connect-sink-coord"}


def test_the_newest_metadata_file_counts(tmp_path: Path) -> None:
    iceberg(tmp_path, {KEY: '{"0":5}'}, name="v9.metadata.json")
    iceberg(tmp_path, {KEY: '{"0":7}'}, name="v10.metadata.json")
    assert [offsets(each) for each in checkpoints(tmp_path)] == [{"control-iceberg-0": 7}]


@pytest.mark.parametrize(
    ("name", "group", "topic"),
    [
        ("a.b.connect-x.y", None, "a.b"),
        ("a.b.c", "b.c-coord", "a"),
        ("a.b.c", "c", "a.b"),
        ("control.group", None, "control"),
    ],
)
def test_names_with_dots_are_told_apart(
    name: str, group: str | None, topic: str, tmp_path: Path
) -> None:
    path = iceberg(tmp_path, {f"kafka.connect.offsets.{name}": '{"0":5}'})
    assert [offsets(each) for each in checkpoints(path, group)] == [{f"{topic}-0": 5}]


def test_names_that_cannot_be_told_apart_are_asked_for(tmp_path: Path) -> None:
    path = iceberg(tmp_path, {"kafka.connect.offsets.a.b.c": '{"0":5}'})
    assert "name the group with --checkpoint-group" in refused(path)


def test_a_damaged_summary_is_named(tmp_path: Path) -> None:
    assert f"snapshot 899, {KEY}: this is not JSON" in refused(iceberg(tmp_path, {KEY: "{0"}))
