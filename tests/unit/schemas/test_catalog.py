"""What the schema files hold together: every record type of the four internal topics."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import schemas
from schemas import RecordType, catalog
from schemas.names import snake_case

ROOT = Path(schemas.__file__).parent
DECODED = [each for each in schemas.all_record_types().values() if each.read == "decode"]
IDS = {
    "__consumer_offsets": [*range(18), *range(19, 25)],  # 18 was never released
    "__share_group_state": [0, 1],
    "__transaction_state": [0],
    "__cluster_metadata": [*range(6), *range(7, 13), 14, 15, *range(17, 30)],
}
NOT_DECODED = {
    "secret": {10, 11},
    "count": {14, 18, 19, 20, 21, 22, 26, 27, 29},
}
LAYOUTS = {
    "ShareGroupMetadata": ("4.1+", "4.0"),
    "ShareGroupPartitionMetadata": ("4.0", "3.9"),
    "ShareGroupStatePartitionMetadata": ("4.1+", "4.0"),
    "ShareSnapshot": ("4.1+", "4.0"),
    "ShareUpdate": ("4.1+", "4.0"),
}


@pytest.mark.parametrize("topic", schemas.INTERNAL_TOPICS)
def test_every_number_of_a_topic_has_a_record_type(topic: str) -> None:
    assert list(schemas.record_types(topic)) == IDS[topic]


def test_a_topic_that_is_not_internal_has_none() -> None:
    assert not schemas.record_types("orders")


def test_the_older_number_of_an_offset_commit_is_the_same_record() -> None:
    by_id = schemas.record_types("__consumer_offsets")
    assert by_id[0] == by_id[1] == schemas.record_type("OffsetCommit")


@pytest.mark.parametrize("read", NOT_DECODED)
def test_what_is_only_counted_is_so_in_the_metadata_log_alone(read: str) -> None:
    counted = {
        (each.topic, number)
        for each in schemas.all_record_types().values()
        for number in each.ids
        if each.read == read
    }
    assert counted == {("__cluster_metadata", number) for number in NOT_DECODED[read]}


def test_layouts_are_tried_newest_first() -> None:
    assert {each.name: each.layouts for each in DECODED if each.layouts} == LAYOUTS


def test_a_record_type_is_found_by_both_of_its_names() -> None:
    assert schemas.record_type("share_snapshot") == schemas.record_type("ShareSnapshot")
    with pytest.raises(KeyError):
        schemas.record_type("ShareCheckpoint")


def test_every_file_is_read() -> None:
    files = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.json")}
    types = {
        f"records/{each.topic}/{each.table}.json" for each in schemas.all_record_types().values()
    }
    embedded = {f"embedded/{name}.json" for name in schemas.all_embedded()}
    tables = {f"tables/{name}.json" for name in catalog.written_tables()}
    folders = ("records", "embedded", "tables")
    assert {each for each in files if each.startswith(folders)} == types | embedded | tables


@pytest.mark.parametrize("record_type", DECODED, ids=lambda each: each.name)
def test_no_version_is_like_the_one_before(record_type: RecordType) -> None:
    def shape(version: int) -> tuple[object, ...]:
        walked = record_type.value.walk()
        fields = [(path, each.tag) for path, each in walked if each.is_in(version, None)]
        return fields, version in record_type.flexible

    for version in range(1, record_type.versions.last + 1):
        assert shape(version) != shape(version - 1)


@pytest.mark.parametrize("record_type", DECODED, ids=lambda each: each.name)
def test_sentences_end_and_do_not_say_the_name_again(record_type: RecordType) -> None:
    abouts = {record_type.name: record_type.about}
    for struct in (record_type.key, record_type.value):
        abouts |= {path: each.about for path, each in struct.walk()}
    for path, about in abouts.items():
        assert about.endswith("."), path
        assert about.count(". ") == 0, f"{path}: one sentence"
        assert about[0].isupper() or about[0].isdigit() or about[0] in '"-', path


def test_embedded_messages_are_parsed_where_the_value_says_what_they_are() -> None:
    uses = {
        (each.name, path): (use.name, use.when_field, use.when_value)
        for each in DECODED
        for path, field in each.value.walk()
        if (use := field.embedded) is not None
    }
    only_consumers = ("protocolType", "consumer")
    assert uses == {
        ("GroupMetadata", "members.subscription"): (
            "consumer_protocol_subscription",
            *only_consumers,
        ),
        ("GroupMetadata", "members.assignment"): ("consumer_protocol_assignment", *only_consumers),
        ("ConsumerGroupMemberMetadata", "classicMemberMetadata.supportedProtocols.metadata"): (
            "consumer_protocol_subscription",
            None,
            None,
        ),
    }


def test_an_unknown_embedded_message_is_named() -> None:
    with pytest.raises(KeyError, match="connect_protocol"):
        schemas.embedded("connect_protocol")


@pytest.mark.parametrize("record_type", DECODED, ids=lambda each: each.name)
def test_record_types_travel_to_workers(record_type: RecordType) -> None:
    copy = pickle.loads(pickle.dumps(record_type))
    assert copy == record_type
    assert hash(copy) == hash(record_type)


def test_schemas_are_read_from_inside_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "groupscope.zip"
    with zipfile.ZipFile(archive, "w") as bundle:
        for path in ROOT.rglob("*"):
            if path.suffix in (".py", ".json"):
                bundle.write(path, path.relative_to(ROOT.parent))
    asked = "import schemas; print(len(schemas.tables()), schemas.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {asked}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    count, file = done.stdout.split()
    assert int(count) == len(schemas.tables())
    assert file.startswith(str(archive))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("groupId", "group_id"),
        ("lastKnownElr", "last_known_elr"),
        ("OffsetCommit", "offset_commit"),
        ("isr", "isr"),
        ("endPoints", "end_points"),
        ("sessionTimeoutMs", "session_timeout_ms"),
        ("isMigratingZkBroker", "is_migrating_zk_broker"),
        ("NoOpRecord", "no_op_record"),
        ("resolvedTopicIdsBySubtopology", "resolved_topic_ids_by_subtopology"),
    ],
)
def test_columns_are_kafkas_names_in_snake_case(theirs: str, ours: str) -> None:
    assert snake_case(theirs) == ours
