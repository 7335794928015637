"""What a reference coordinator wrote, as the bytes of a broker's log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schemas import ZERO_UUID, embedded, record_type
from tests.support.encoder import encode_embedded, encode_key, encode_value
from tests.support.log_dirs import LogDir
from tests.support.segments import Header, Record, batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from schemas.model import Field, Struct
    from tests.support.reference_expiration import Coordinator

VERSIONS = {"group_metadata": 3}
"""Of values whose rows name none; 0 otherwise."""


def log_dir_of(path: Path, coordinators: Iterable[Coordinator]) -> Path:
    """Write each coordinator's records as its partition of the offsets topic, a batch a record.

    Transactions are not written.
    """
    made = LogDir.create(path)
    for each in coordinators:
        rows = [(name, row) for name, told in each.rows.items() for row in told]
        rows.sort(key=lambda told: told[1]["offset"])
        batches = [batch([_record(name, row)], Header(leader_epoch=0)).data for name, row in rows]
        made.partition(f"__consumer_offsets-{each.number}", {0: batches}, [(0, 0)])
    return path


def _record(table: str, row: Mapping[str, Any]) -> Record:
    kind = record_type(table)
    version = row.get("value_version")
    version = VERSIONS.get(table, 0) if version is None else version
    key = encode_key(kind, kind.ids[-1], filled(kind.key, 0, row["key"]))
    value = None
    if not row["is_tombstone"]:
        value = encode_value(kind, version, filled(kind.value, version, row["value"]))
    return Record(row["offset"], round(row["timestamp"].timestamp() * 1000), key, value)


def filled(schema: Struct, version: int, value: Mapping[str, Any]) -> dict[str, Any]:
    """What is not named has its default, and a subscription the bytes of a member's client."""
    found = {each.column: _content(each, version, value) for each in schema.at(version, None)}
    if "subscription_decoded" in value:
        found["subscription"] = _subscription(value["subscription_decoded"])
    return found


def _content(schema: Field, version: int, value: Mapping[str, Any]) -> Any:
    if schema.column not in value:
        return _default(schema, version)
    said = value[schema.column]
    if schema.type == "struct" and schema.is_array:
        return [filled(schema.struct, version, each) for each in said]
    return -1 if said is None and schema.type == "int64" else said


def _default(schema: Field, version: int) -> Any:
    if schema.default is not None or version in schema.nullable:
        return schema.default
    if schema.is_array:
        return []
    return {"string": "", "bytes": b"", "bool": False, "uuid": ZERO_UUID}.get(schema.type, 0)


def _subscription(decoded: Mapping[str, Any] | None) -> bytes:
    if decoded is None:
        return b"\xff"
    message = embedded("consumer_protocol_subscription")
    return encode_embedded(message, 0, filled(message.struct, 0, decoded))
