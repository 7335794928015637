"""What an INPUT is: every form is recognised and said, and everything else refused with words."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from analytics.dump.files.inputs import Inputs, recognize
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from tests.support.log_dirs import LogDir, written

OFFSETS = "__consumer_offsets-0"
ROW = {"topic": "__consumer_offsets", "partition": 0, "offset": 1, "key": None, "value": "AA=="}


@pytest.fixture
def broker(tmp_path: Path) -> LogDir:
    disk = LogDir.create(tmp_path / "dump" / "broker-1")
    disk.partition(OFFSETS, {0: [written(0)]})
    return disk


def paths(found: Inputs) -> list[str]:
    return [Path(disk.path).name for disk in found.disks]


def test_a_log_directory(broker: LogDir) -> None:
    found = recognize([str(broker.path)])
    assert found.disks[0].path == str(broker.path)
    assert found.disks[0].partitions is None
    assert found.descriptions == (f"{broker.path}: a broker's log directory",)


def test_a_log_directory_without_meta_properties_is_known_by_its_partitions(
    broker: LogDir,
) -> None:
    (broker.path / "meta.properties").unlink()
    assert paths(recognize([str(broker.path)])) == ["broker-1"]


def test_a_log_directory_with_nothing_but_meta_properties(broker: LogDir) -> None:
    (broker.path / OFFSETS / f"{0:020d}.log").unlink()
    (broker.path / OFFSETS).rmdir()
    assert paths(recognize([str(broker.path)])) == ["broker-1"]


def test_a_folder_of_brokers_beside_other_things(broker: LogDir) -> None:
    LogDir.create(broker.path.parent / "broker-2", node=2)
    (broker.path.parent / "tools").mkdir()
    (broker.path.parent / "about.json").write_text("{}")
    found = recognize([str(broker.path.parent)])
    assert paths(found) == ["broker-1", "broker-2"]
    assert any(
        "tools: not a log directory; not read" in sentence for sentence in found.descriptions
    )


def test_disks_of_a_broker_within_a_folder_of_brokers(tmp_path: Path) -> None:
    for name in ("disk-a", "disk-b"):
        LogDir.create(tmp_path / "broker-7" / name, node=7)
    found = recognize([str(tmp_path)])
    assert [disk.name for disk in found.disks] == ["broker-7", "broker-7"]


def test_a_folder_of_dumps_is_refused_with_a_hint(broker: LogDir) -> None:
    with pytest.raises(InputNotRecognizedError, match=r"Log directories lie in .*dump: name that"):
        recognize([str(broker.path.parent.parent)])


def test_a_partition_directory(broker: LogDir) -> None:
    (disk,) = recognize([str(broker.path / OFFSETS)]).disks
    assert disk.path == str(broker.path)
    assert disk.partitions is not None
    assert [(p.topic, p.partition, p.file) for p in disk.partitions] == [
        ("__consumer_offsets", 0, None)
    ]


def test_a_folder_named_like_a_partition_that_holds_none_is_no_partition(tmp_path: Path) -> None:
    (tmp_path / "broker-1").mkdir()
    with pytest.raises(InputNotRecognizedError, match="Found an empty folder"):
        recognize([str(tmp_path / "broker-1")])


def test_a_segment_in_its_directory(broker: LogDir) -> None:
    (disk,) = recognize([str(broker.path / OFFSETS / f"{0:020d}.log")]).disks
    assert disk.partitions is not None
    assert disk.partitions[0].file == f"{0:020d}.log"


def test_a_segment_elsewhere_needs_to_be_told_whose_it_is(tmp_path: Path) -> None:
    segment = tmp_path / f"{0:020d}.log"
    segment.write_bytes(written(0))
    with pytest.raises(InputNotRecognizedError, match="--topic-partition __consumer_offsets-17"):
        recognize([str(segment)])
    (disk,) = recognize([str(segment)], "__consumer_offsets-17").disks
    assert disk.partitions is not None
    assert (disk.partitions[0].topic, disk.partitions[0].partition) == ("__consumer_offsets", 17)


def test_a_directory_that_was_being_deleted_is_read_only_when_told_whose_it_is(
    tmp_path: Path,
) -> None:
    folder = tmp_path / f"__consumer_offsets-0.{'ab' * 16}-delete"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(written(0))
    with pytest.raises(InputNotRecognizedError, match="its name says delete"):
        recognize([str(folder)])
    assert recognize([str(folder)], "__consumer_offsets-0").disks


def test_a_topic_partition_that_is_none(broker: LogDir) -> None:
    with pytest.raises(InputNotRecognizedError, match="give a topic, a hyphen"):
        recognize([str(broker.path)], "__consumer_offsets")


def test_name_equals_path_names_the_copy(broker: LogDir) -> None:
    (disk,) = recognize([f"dead={broker.path}"]).disks
    assert disk.name == "dead"


def test_a_path_with_an_equals_sign_that_exists_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "day=1"
    LogDir.create(folder)
    (disk,) = recognize([str(folder)]).disks
    assert disk.name is None


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_would_lead_out_of_the_results_is_refused(broker: LogDir, name: str) -> None:
    with pytest.raises(InputNotRecognizedError, match="cannot be the name of a copy"):
        recognize([f"{name}={broker.path}"])


def test_a_glob_names_what_it_matches(broker: LogDir) -> None:
    LogDir.create(broker.path.parent / "broker-2", node=2)
    (broker.path.parent / "broker-3.txt").write_text("no")
    found = recognize([str(broker.path.parent / "broker-*")])
    assert paths(found) == ["broker-1", "broker-2"]
    assert any("broker-3.txt" in sentence for sentence in found.descriptions)


def test_a_glob_that_matches_nothing_and_one_that_matches_nothing_known(tmp_path: Path) -> None:
    with pytest.raises(InputNotRecognizedError, match="no file or folder matches"):
        recognize([str(tmp_path / "x*")])
    (tmp_path / "xy").write_text("no")
    with pytest.raises(InputNotRecognizedError, match="matches 1 names, none of them a known form"):
        recognize([str(tmp_path / "x*")])


def test_what_is_given_twice_is_read_once(broker: LogDir) -> None:
    both = recognize([str(broker.path / OFFSETS), str(broker.path)])
    assert [disk.partitions for disk in both.disks] == [None]
    parts = recognize([str(broker.path / OFFSETS), str(broker.path / OFFSETS)])
    assert len(parts.disks[0].partitions or ()) == 1


def test_a_file_uri_is_a_local_path(broker: LogDir) -> None:
    assert paths(recognize([f"file://{broker.path}"])) == ["broker-1"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("rows.json", json.dumps(ROW).encode() + b"\n", "json"),
        ("rows", json.dumps(ROW).encode(), "json"),
        ("rows.json.gz", gzip.compress(json.dumps(ROW).encode() + b"\n", mtime=0), "json"),
        ("rows.parquet", b"PAR1....PAR1", "parquet"),
        ("rows.avro", b"Obj\x01rest", "avro"),
    ],
)
def test_archived_rows_are_known_by_their_bytes(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    (rows,) = recognize([str(path)]).raw_rows
    assert (rows.format, rows.files) == (expected, (str(path),))


def test_a_folder_of_archived_rows_as_spark_writes_it(tmp_path: Path) -> None:
    for day in ("day=1", "day=2"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "part-0.parquet").write_bytes(b"PAR1....PAR1")
    (tmp_path / "_SUCCESS").touch()
    (rows,) = recognize([str(tmp_path)]).raw_rows
    assert rows.format == "parquet"
    assert [Path(file).parent.name for file in rows.files] == ["day=1", "day=2"]


def test_a_folder_of_several_formats_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1....PAR1")
    (tmp_path / "b.json").write_text(json.dumps(ROW))
    with pytest.raises(InputNotRecognizedError, match="json and parquet side by side"):
        recognize([str(tmp_path)])


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"topic":1}\n', b"[" * 5000, b"\x1f\x8bbroken", b"text"]
)
def test_a_file_that_is_nothing_known_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(content)
    with pytest.raises(InputNotRecognizedError, match=r"neither a segment .* nor archived rows"):
        recognize([str(path)])


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputNotRecognizedError, match="there is no such file or folder"):
        recognize([str(tmp_path / "gone")])


def test_a_finished_workspace(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"schema_version": 3, "groupscope_version": "1"}')
    assert recognize([str(tmp_path)]).workspaces == (str(tmp_path),)


def test_a_workspace_whose_run_never_finished(tmp_path: Path) -> None:
    (tmp_path / ".groupscope").touch()
    with pytest.raises(InputUnreadableError, match="never finished"):
        recognize([str(tmp_path)])


def test_a_manifest_of_something_else_makes_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "web app"}')
    with pytest.raises(InputNotRecognizedError, match=r"Found manifest\.json"):
        recognize([str(tmp_path)])


def test_a_uri_that_nothing_opens_is_refused_in_one_line() -> None:
    with pytest.raises(
        InputNotRecognizedError, match="nothing here opens URIs of nonsense:"
    ) as refused:
        recognize(["nonsense://host/path"])
    assert "\n" not in str(refused.value)


REPORTS = Path(__file__).parents[2] / "cases" / "reports"
SINK = REPORTS / "sink-aiven-jsonl"


def test_json_lines_without_topic_and_partition_ask_whose_they_are() -> None:
    for given in (SINK, SINK / "__consumer_offsets-9-100.jsonl"):
        with pytest.raises(InputNotRecognizedError) as error:
            recognize([str(given)])
        assert str(error.value).startswith(f"{given}: JSON Lines without topic and partition")
        assert str(error.value).endswith("jsonl --topic-partition __consumer_offsets-9")


def test_whose_they_are_is_taken_from_the_option() -> None:
    (rows,) = recognize([str(SINK)], "__consumer_offsets-9").raw_rows
    assert rows.place == ("__consumer_offsets", 9)
    with pytest.raises(InputNotRecognizedError, match="its name says __consumer_offsets-9, and"):
        recognize([str(SINK)], "__consumer_offsets-8")


@pytest.mark.parametrize("first", ['{"key": null, "offset": 1}', "no JSON", "[1]"])
def test_the_first_line_alone_does_not_decide(first: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{first}\n{json.dumps(ROW)}\n")
    (rows,) = recognize([str(path)]).raw_rows
    assert rows.format == "json"


TABLES = {
    "Delta Lake": ("_delta_log/00000000000000000000.json", "part-0.parquet"),
    "Delta Lake ": ("_delta_log/00000000000000000000.json", "day=1/part-0.parquet"),
    "Iceberg": ("metadata/v1.metadata.json", "data/day=1/part-0.parquet"),
    "Iceberg ": ("metadata/00000-a1.gz.metadata.json", "part-0.parquet"),
    "Hudi": (".hoodie/hoodie.properties", "part-0.parquet"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_files_of_a_table_are_never_read_without_its_log(tmp_path: Path, kind: str) -> None:
    log, data = (tmp_path / "offsets_raw" / name for name in TABLES[kind])
    for path, content in ((log, b"{}"), (data, b"PAR1....PAR1")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    given = {tmp_path / "offsets_raw", data.parent, data, data.parent / "*.parquet"}
    for each in given:
        with pytest.raises(InputNotRecognizedError, match=f"table of {kind.strip()} .*from-table"):
            recognize([str(each)])


def test_a_folder_named_metadata_makes_no_table(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "notes.json").write_text("{}")
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1....PAR1")
    assert recognize([str(tmp_path)]).raw_rows
