"""The parser of the tool's text reads every form the releases print."""

from __future__ import annotations

import pytest

from tests.support.dump_log import parse_dump_log, parse_record_line
from tests.support.dump_log_contents import Content, Control, DumpLogError

HEADER = "Dumping 00000000000000000014.log\nLog starting offset: 14\n"
BATCH = (
    "baseOffset: 14 lastOffset: 37 count: 10 baseSequence: 0 lastSequence: 23 producerId: -1 "
    "producerEpoch: -1 partitionLeaderEpoch: 3 isTransactional: true isControl: false "
    "deleteHorizonMs: OptionalLong[1795254215999] position: 597 CreateTime: 1795254215274 "
    "size: 245 magic: 2 compresscodec: gzip crc: 2528842119 isvalid: true\n"
)
RECORD = (
    "| offset: 15 CreateTime: 1795254215274 keySize: 29 valueSize: 41 sequence: 1 headerKeys: []"
)


def test_a_batch_line_of_magic_2() -> None:
    segment = parse_dump_log(HEADER + BATCH)
    (batch,) = segment.batches
    assert (segment.name, segment.start_offset) == ("00000000000000000014.log", 14)
    assert (batch.offset, batch.last_offset, batch.count) == (14, 37, 10)
    assert (batch.position, batch.size, batch.magic, batch.codec) == (597, 245, 2, "gzip")
    assert (batch.leader_epoch, batch.producer_id, batch.is_transactional) == (3, -1, True)
    assert (batch.delete_horizon, batch.max_timestamp) == (1795254215999, 1795254215274)
    assert (batch.crc, batch.is_valid) == (2528842119, True)


@pytest.mark.parametrize("brace", ["", "}"])
def test_a_wrapper_of_magic_0_begins_where_its_first_record_does(brace: str) -> None:
    segment = parse_dump_log(
        "offset: 507 position: 90 NoTimestampType: -1 size: 301 magic: 0 compresscodec: gzip "
        "crc: 7 isvalid: true\n"
        f"| offset: 488 NoTimestampType: -1 keySize: 9 valueSize: -1 isValid: true crc: 12{brace} "
        'key: {"type":"2","data":{"group":"g"}} payload: <DELETE>\n'
    )
    (batch,) = segment.batches
    (record,) = batch.records
    assert (batch.offset, batch.base_offset, batch.count) == (507, 488, None)
    assert (batch.leader_epoch, batch.producer_id, batch.is_transactional) == (-1, -1, False)
    assert (record.offset, record.timestamp, record.value_size) == (488, -1, -1)
    assert record.key == Content(type=2, data={"group": "g"})
    assert record.payload == Content(is_delete=True)


def test_key_and_payload_are_split_by_the_json_not_by_the_words() -> None:
    record = parse_record_line(
        RECORD + ' key: {"type":"1","data":{"group":"} payload: {","topic":"t","partition":0}}'
        ' payload: {"version":"1","data":{"offset":11,"metadata":"x payload: y"}}'
    )
    assert record.key == Content(
        type=1, data={"group": "} payload: {", "topic": "t", "partition": 0}
    )
    assert record.payload == Content(version=1, data={"offset": 11, "metadata": "x payload: y"})


def test_the_tool_of_4_0_calls_the_version_of_a_value_its_type() -> None:
    record = parse_record_line(
        RECORD + ' key: {"type":"0","data":{"groupId":"g"}} payload: {"type":"0","data":{}}'
    )
    assert record.payload is not None
    assert record.payload.value_version == 0


def test_the_metadata_log_names_types_and_has_no_key() -> None:
    record = parse_record_line(RECORD + ' payload: {"type":"NO_OP_RECORD","version":0,"data":{}}')
    assert record.key is None
    assert record.payload == Content(type="NO_OP_RECORD", version=0, data={})


@pytest.mark.parametrize(
    ("text", "control"),
    [
        ("endTxnMarker: COMMIT coordinatorEpoch: 3", Control("COMMIT", 3)),
        ("endTxnMarker: ABORT coordinatorEpoch: 0", Control("ABORT", 0)),
        ("controlType: LEADER_CHANGE(2)", Control("LEADER_CHANGE")),
        ('LeaderChange: {"version":0}', Control("LEADER_CHANGE", data={"version": 0})),
        ('SnapshotHeader {"version":0}', Control("SNAPSHOT_HEADER", data={"version": 0})),
        ('SnapshotFooter {"version":0}', Control("SNAPSHOT_FOOTER", data={"version": 0})),
        ('KRaftVersion {"version":0}', Control("KRAFT_VERSION", data={"version": 0})),
        ('KRaftVoters {"version":0}', Control("KRAFT_VOTERS", data={"version": 0})),
    ],
)
def test_control_records(text: str, control: Control) -> None:
    assert parse_record_line(f"{RECORD} {text}").control == control


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "key: Unknown record type 24 at offset 15, skipping.",
            "Unknown record type 24 at offset 15, skipping.",
        ),
        (
            "key: Error at offset 15, skipping. short",
            "Error at offset 15, skipping. short",
        ),
    ],
)
def test_what_the_tool_cannot_read_stays_a_sentence(text: str, problem: str) -> None:
    record = parse_record_line(f"{RECORD} {text}")
    assert record.key == Content(problem=problem)
    assert record.payload is None


def test_what_the_tool_cannot_read_of_a_metadata_log() -> None:
    record = parse_record_line(RECORD + " payload: Error at 15, skipping. Unknown metadata id 29")
    assert record.payload == Content(problem="Error at 15, skipping. Unknown metadata id 29")


TRANSACTION = (
    "producerId:1000,producerEpoch:2,state=PrepareCommit,"
    "partitions=[__consumer_offsets-7,a-b-0],"
    "txnLastUpdateTimestamp=1700000002000,txnTimeoutMs=60000"
)


@pytest.mark.parametrize("identifier", ["tx", " payload: <DELETE>", "ü\n| offset: 1\n}\n", ""])
def test_the_text_form_of_a_transaction_whatever_its_id_holds(identifier: str) -> None:
    size = 4 + len(identifier.encode())
    line = RECORD.replace("keySize: 29", f"keySize: {size}")
    key = f" key: transaction_metadata::transactionalId={identifier}"
    record = parse_record_line(f"{line}{key} payload: {TRANSACTION}")
    assert record.key == Content(type=0, data={"transactionalId": identifier})
    assert record.payload == Content(
        data={
            "producerId": 1000,
            "producerEpoch": 2,
            "transactionTimeoutMs": 60000,
            "transactionStatus": 2,
            "transactionPartitions": [("__consumer_offsets", 7), ("a-b", 0)],
            "transactionLastUpdateTimestampMs": 1700000002000,
        },
        is_partial=True,
    )


def test_a_line_that_a_transactional_id_broke_is_put_together() -> None:
    identifier = "a\n\n| offset: 1"
    line = RECORD.replace("keySize: 29", f"keySize: {4 + len(identifier)}")
    text = f"{line} key: transaction_metadata::transactionalId={identifier} payload: <DELETE>\n"
    segment = parse_dump_log(HEADER + BATCH + text + RECORD + "\n")
    first, _second = segment.batches[0].records
    assert first.key == Content(type=0, data={"transactionalId": identifier})


def test_trailing_bytes_are_counted() -> None:
    text = HEADER + BATCH + "Found 33 invalid bytes at the end of 00000000000000000014.log\n"
    assert parse_dump_log(text).invalid_bytes == 33


@pytest.mark.parametrize("line", ["nonsense", "| offset: 3", "baseOffset: 1 position: x"])
def test_a_line_of_no_known_form_is_refused(line: str) -> None:
    with pytest.raises(DumpLogError, match="line 4"):
        parse_dump_log(HEADER + BATCH + line + "\n")
