"""Records of `__share_group_state` in the bytes of KIP-932's late text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from schemas.catalog import dialect_types
from tests.support.encoder import encode_key, encode_value
from tests.support.reference_share_coordinator import (
    ReferenceShareCoordinator,
    ShareRecord,
    ShareState,
    Snapshot,
    Update,
)
from tests.support.segments import NOW, Record, batch

TOPIC_IDS = {f"topic-{number}": "A" * 21 + end for number, end in enumerate("AQgw")}
"""Ids by the names that random histories use."""


def text_record(record: ShareRecord, state_epoch: int = 0) -> Record:
    """Key and value as the text has them; an update repeats its state epoch."""
    group, topic, partition = record.key
    name = "share_update" if isinstance(record.value, Update) else "share_snapshot"
    kind = dialect_types("kip-932-text")[name]
    key = {"group_id": group, "topic_id": TOPIC_IDS[topic], "partition": partition}
    value = None if record.value is None else encode_value(kind, 0, _value(record, state_epoch))
    return Record(record.offset, NOW, encode_key(kind, kind.ids[0], key), value)


def write_log(folder: Path, records: Iterable[Record]) -> Path:
    """Write a partition's only segment, a batch a record."""
    folder.mkdir(parents=True, exist_ok=True)
    data = b"".join(batch([each]).data for each in records)
    (folder / f"{0:020}.log").write_bytes(data)
    return folder


def replayed_by_text(records: Iterable[ShareRecord]) -> dict[Any, ShareState]:
    """What the text's replay leaves: the latest snapshot, and updates whose epoch matches."""
    latest: dict[Any, ShareRecord] = {}
    records = list(records)
    for record in records:
        if not isinstance(record.value, Update):
            latest[record.key] = record
    coordinator = ReferenceShareCoordinator()
    for record in records:
        head = latest.get(record.key)
        if head is None or not isinstance(head.value, Snapshot) or record.offset < head.offset:
            continue
        same = isinstance(record.value, Update) and (
            record.value.snapshot_epoch == head.value.snapshot_epoch
        )
        if record is head or same:
            coordinator.replay(record)
    return {key: state for (_, key), state in coordinator.states.items()}


def _value(record: ShareRecord, state_epoch: int) -> dict[str, Any]:
    value = record.value
    assert value is not None
    return {
        "state_epoch": value.state_epoch if isinstance(value, Snapshot) else state_epoch,
        "snapshot_epoch": value.snapshot_epoch,
        "start_offset": value.start_offset,
        "state_batches": [vars(each) for each in value.batches],
    }
