"""Whether one decoded row says what one printed record line says.

Provenance (offset, epoch, producer, batch, position, size) is compared as well as contents. The
record types are named here once more, from Kafka's facts and not from the schemas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.dump_log_fields import Comparison, Tally

if TYPE_CHECKING:
    from tests.support.decoded_rows import DecodedRow
    from tests.support.dump_folder import PrintedSegment
    from tests.support.dump_log import BatchLine, RecordLine
    from tests.support.dump_log_contents import Content

_OFFSETS_TABLES = {
    0: "offset_commit",
    1: "offset_commit",
    2: "group_metadata",
    3: "consumer_group_metadata",
    4: "consumer_group_partition_metadata",
    5: "consumer_group_member_metadata",
    6: "consumer_group_target_assignment_metadata",
    7: "consumer_group_target_assignment_member",
    8: "consumer_group_current_member_assignment",
    9: "share_group_partition_metadata",
    10: "share_group_member_metadata",
    11: "share_group_metadata",
    12: "share_group_target_assignment_metadata",
    13: "share_group_target_assignment_member",
    14: "share_group_current_member_assignment",
    15: "share_group_state_partition_metadata",
    16: "consumer_group_regular_expression",
    17: "streams_group_metadata",
    19: "streams_group_member_metadata",
    20: "streams_group_target_assignment_metadata",
    21: "streams_group_target_assignment_member",
    22: "streams_group_current_member_assignment",
    23: "streams_group_topology",
    24: "streams_group_target_assignment_resolved_topic_ids",
}

TABLES: dict[str, dict[int, str]] = {
    "__consumer_offsets": _OFFSETS_TABLES,
    "__share_group_state": {0: "share_snapshot", 1: "share_update"},
    "__transaction_state": {0: "transaction_log"},
}

METADATA_NUMBERS = {
    "REGISTER_BROKER_RECORD": 0,
    "UNREGISTER_BROKER_RECORD": 1,
    "TOPIC_RECORD": 2,
    "PARTITION_RECORD": 3,
    "CONFIG_RECORD": 4,
    "PARTITION_CHANGE_RECORD": 5,
    "FENCE_BROKER_RECORD": 7,
    "UNFENCE_BROKER_RECORD": 8,
    "REMOVE_TOPIC_RECORD": 9,
    "DELEGATION_TOKEN_RECORD": 10,
    "USER_SCRAM_CREDENTIAL_RECORD": 11,
    "FEATURE_LEVEL_RECORD": 12,
    "CLIENT_QUOTA_RECORD": 14,
    "PRODUCER_IDS_RECORD": 15,
    "BROKER_REGISTRATION_CHANGE_RECORD": 17,
    "ACCESS_CONTROL_ENTRY_RECORD": 18,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": 19,
    "NO_OP_RECORD": 20,
    "ZK_MIGRATION_STATE_RECORD": 21,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": 22,
    "BEGIN_TRANSACTION_RECORD": 23,
    "END_TRANSACTION_RECORD": 24,
    "ABORT_TRANSACTION_RECORD": 25,
    "REMOVE_DELEGATION_TOKEN_RECORD": 26,
    "REGISTER_CONTROLLER_RECORD": 27,
    "CLEAR_ELR_RECORD": 28,
    "UNREGISTER_CONTROLLER_RECORD": 29,
}

# Secrets, access rights and what has no meaning for groups: counted by type, never decoded.
COUNTED_METADATA = frozenset({10, 11, 14, 18, 19, 20, 21, 22, 26, 27, 29})

# Where two layouts share one version, the field that only the newer layout has.
LAYOUT_MARKS = {
    "share_snapshot": "createTimestamp",
    "share_group_metadata": "metadataHash",
    "share_group_state_partition_metadata": "initializingTopics",
}


@dataclass(frozen=True)
class PrintedRecord:
    """A record line with the batch and the segment it stands in."""

    segment: PrintedSegment
    batch: BatchLine
    line: RecordLine

    @property
    def where(self) -> str:
        """The record's place in words."""
        return f"{self.segment.copy}/{self.segment.segment}@{self.line.offset}"

    @property
    def place(self) -> tuple[str, str, int | None]:
        """Copy, segment and offset, as in ``DecodedRow.place``."""
        return self.segment.copy, self.segment.segment, self.line.offset

    @property
    def number(self) -> int | None:
        """The record type's number; null for control records and what the tool could not read."""
        content = self.line.key or self.line.payload
        if content is None or content.type is None:
            return None
        if isinstance(content.type, int):
            return content.type
        return METADATA_NUMBERS[content.type]

    @property
    def table(self) -> str | None:
        """The table the record belongs in; null for a type this project does not decode."""
        if self.line.control is not None:
            return "control_markers"
        if self.number is None:
            return None
        if self.segment.topic != "__cluster_metadata":
            return TABLES[self.segment.topic].get(self.number)
        content = self.line.payload
        if content is None or self.number in COUNTED_METADATA:
            return None
        return str(content.type).lower()

    @property
    def is_counted(self) -> bool:
        """Whether the record is one of the metadata log's types that are only counted."""
        return (
            self.segment.topic == "__cluster_metadata"
            and self.line.control is None
            and self.number in COUNTED_METADATA
        )

    @property
    def problem(self) -> str | None:
        """The sentence the tool printed instead of contents."""
        for content in (self.line.key, self.line.payload):
            if content is not None and content.problem is not None:
                return content.problem
        return None


def compare_record(tally: Tally, record: PrintedRecord, row: DecodedRow) -> None:
    """Compare one row with its line; differences go to ``tally``."""
    where = f"{record.where} {row.table}"
    tally.equal(f"{where} table", record.table, row.table)
    if record.table != row.table:
        return
    _compare_provenance(tally, where, record, row)
    if record.line.control is not None:
        _compare_control(tally, where, record, row)
    else:
        _compare_contents(tally, where, record, row)


def _compare_provenance(tally: Tally, where: str, record: PrintedRecord, row: DecodedRow) -> None:
    segment, batch, line = record.segment, record.batch, record.line
    expected = {
        "topic": segment.topic,
        "partition": segment.partition,
        "offset": line.offset,
        "timestamp": None if line.timestamp == -1 else line.timestamp,
        # Magic 0 and 1 have none, and the tool prints none.
        "leader_epoch": batch.leader_epoch if batch.magic >= 2 else None,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "is_transactional": batch.is_transactional,
        "batch_offset": batch.base_offset,
        "batch_position": batch.position,
        "record_bytes": record_bytes(record),
        "copy": segment.copy,
        "segment": segment.segment,
    }
    for column, value in expected.items():
        tally.equal(f"{where} {column}", value, row.values[column])


def _compare_control(tally: Tally, where: str, record: PrintedRecord, row: DecodedRow) -> None:
    control = record.line.control
    assert control is not None
    tally.equal(f"{where} control_type", control.name, row.values["control_type"])
    epoch = row.values["coordinator_epoch"]
    tally.equal(f"{where} coordinator_epoch", control.coordinator_epoch, epoch)


def _compare_contents(tally: Tally, where: str, record: PrintedRecord, row: DecodedRow) -> None:
    key, payload, values = record.line.key, record.line.payload, row.values
    assert payload is not None
    tally.equal(f"{where} record_type", record.number, values["record_type"])
    tally.equal(f"{where} is_tombstone", payload.is_delete, values["is_tombstone"])
    if key is not None and key.data is not None:
        Comparison(tally, "key", 0).struct(f"{where} key", key.data, values["key"])
    if payload.is_delete:
        tally.equal(f"{where} value", None, values.get("value"))
        tally.equal(f"{where} value_version", None, values["value_version"])
        return
    assert payload.data is not None
    version = payload.value_version
    if version is None:
        version = values["value_version"]
    else:
        tally.equal(f"{where} value_version", version, values["value_version"])
    comparison = Comparison(tally, row.table, version, payload.is_partial)
    _compare_layout(tally, where, row, payload)
    comparison.struct(f"{where} value", payload.data, _value(row, payload))


def _value(row: DecodedRow, payload: Content) -> dict[str, object] | None:
    value: dict[str, object] | None = row.values.get("value")
    # A message without any field has no struct to show for it.
    return {} if value is None and payload.data == {} else value


def _compare_layout(tally: Tally, where: str, row: DecodedRow, payload: Content) -> None:
    mark = LAYOUT_MARKS.get(row.table)
    if mark is not None:
        layout = "4.1+" if payload.data is not None and mark in payload.data else "4.0"
        tally.equal(f"{where} value_layout", layout, row.values["value_layout"])


LOG_OVERHEAD = 12
MESSAGE_BYTES = {0: 14, 1: 22}


def record_bytes(record: PrintedRecord) -> int:
    """The encoded size of a record, from what was printed and the batch's base timestamp."""
    batch, line = record.batch, record.line
    contents = max(line.key_size, 0) + max(line.value_size, 0)
    if batch.magic < 2:
        return LOG_OVERHEAD + MESSAGE_BYTES[batch.magic] + contents
    assert not line.header_keys, "record headers are not expected in an internal topic"
    start = batch.position + 27
    base_timestamp = int.from_bytes(record.segment.data[start : start + 8], "big", signed=True)
    # With log-append time the records keep the deltas their producer gave them.
    timestamp = line.timestamp if batch.timestamp_label == "CreateTime" else base_timestamp
    size = 1 + varint_bytes(timestamp - base_timestamp) + varint_bytes(line.offset - batch.offset)
    size += varint_bytes(line.key_size) + varint_bytes(line.value_size) + contents + 1
    return size + varint_bytes(size)


def varint_bytes(value: int) -> int:
    """How many bytes the zigzag varint of a number takes."""
    zigzag = (value << 1) ^ (value >> 63)
    return max(1, -(-zigzag.bit_length() // 7))
