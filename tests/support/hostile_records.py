"""Records of KIP-848, share and streams groups, and of a metadata log, every text in them hostile.

Values are made by the schemas: a text is a name of the kind that its column names, so that a field
that is added is hostile, too, or an error until it is said what it holds.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

from schemas import CONSUMER_OFFSETS, record_types
from tests.support.encoder import default_of, encode_key, encode_value
from tests.support.segments import NOW, Record, batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from schemas.model import Field, RecordType, Struct
    from tests.support.log_dirs import LogDir

SHARE_STATE: Final = "__share_group_state"
METADATA: Final = "__cluster_metadata"
SETTINGS: Final = (
    (2, "t", "leader.replication.throttled.replicas", "o"),
    (16, "o", "match", "c"),
    (32, "gs", "errors.deadletterqueue.topic.name", "t"),
)
"""Type of a resource, what its name is of, a setting of it, and what its value is of."""

TYPES: Final = {"consumer": "k", "share": "s", "streams": "w"}
"""Letters of groups of a type: one name is of one group."""

_KINDS: Final = {
    "t": ("topic_name", "subscribed_topic_names", "source_topics", "repartition_sink_topics"),
    "m": ("member_id",),
    "i": ("instance_id",),
    "c": ("client_id",),
    "h": ("client_host", "host"),
    "r": ("rack_id", "rack", "racks"),
    "p": ("process_id",),
    "e": ("subscribed_topic_regex", "regular_expression", "source_topic_regex"),
    "x": ("resource_name",),
}
_OF_TOPICS: Final = ("topics", "name")
"""Columns that are a topic's name where the record is of a group; of a regex its topics."""
_WORDS: Final = {"server_assignor": "uniform", "subtopology_id": "0"}
_NUMBERS: Final = {
    "topic_id": 0,
    "partition": 0,
    "partitions": 0,
    "topology_epoch": 0,
    "epoch": 2,
    "assignment_epoch": 2,
    "member_epoch": 2,
    "previous_member_epoch": 1,
    "validated_topology_epoch": 0,
    "assignment_epochs": 2,
    "num_partitions": 1,
    "replication_factor": 1,
    "port": 9092,
    "leader": 1,
    "leader_epoch": 0,
    "broker_id": 1,
    "start_offset": 5,
    "snapshot_epoch": 0,
    "state_epoch": 0,
    "rebalance_timeout_ms": 60000,
    "session_timeout_ms": 45000,
}


def topic_id(signs: str) -> str:
    """Return the id of the topic with such signs in its name."""
    digest = hashlib.sha256(signs.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Hostile:
    """Makes keys and values of records with names of such signs."""

    def __init__(self, name_of: Callable[[str, str], str], signs: str, letter: str) -> None:
        self._name_of, self._signs, self._letter = name_of, signs, letter

    def struct(self, schema: Struct, version: int, layout: str | None) -> dict[str, Any]:
        """Return a value of all fields that there are in a version."""
        return {
            each.column: self._field(each, version, layout) for each in schema.at(version, layout)
        }

    def _field(self, field: Field, version: int, layout: str | None) -> Any:
        kind = field.wire_type(layout)
        if kind == "struct" and field.column == "classic_member_metadata":
            return None
        single = (
            self.struct(field.struct, version, layout)
            if kind == "struct"
            else self._single(field, kind, version)
        )
        return [single] if field.is_array else single

    def _single(self, field: Field, kind: str, version: int) -> Any:
        if kind == "uuid":
            return topic_id(self._signs)
        if kind == "string":
            return self._text(field.column)
        if field.column in _NUMBERS:
            return _NUMBERS[field.column]
        return NOW if field.column.endswith("timestamp") else default_of(field, version) or 0

    def _text(self, column: str) -> str:
        if column in _WORDS:
            return _WORDS[column]
        if column == "group_id":
            return self._name_of(f"g{self._letter}", self._signs)
        if column in _OF_TOPICS:
            return self._name_of("t", self._signs)
        if column in ("key", "value"):
            return self._name_of("o", self._signs)
        (letter,) = [each for each, columns in _KINDS.items() if column in columns]
        return self._name_of(letter, self._signs)


def write_groups(log: LogDir, name_of: Callable[[str, str], str], signs: tuple[str, ...]) -> None:
    """Write a partition of groups of the newer types, every record type of theirs in it."""
    rows = []
    kinds = record_types(CONSUMER_OFFSETS).values()
    for group_type, letter in TYPES.items():
        of_type = [each for each in kinds if each.table.startswith(f"{group_type}_group")]
        for each in signs:
            rows += [_row(kind, Hostile(name_of, each, letter)) for kind in _newest(of_type)]
    _write(log, f"{CONSUMER_OFFSETS}-1", rows)
    state = record_types(SHARE_STATE).values()
    rows = [_row(kind, Hostile(name_of, each, TYPES["share"])) for each in signs for kind in state]
    _write(log, f"{SHARE_STATE}-0", rows)


def write_metadata(log: LogDir, name_of: Callable[[str, str], str], signs: tuple[str, ...]) -> None:
    """Write a metadata log of topics, and of settings of topics, groups and client metrics."""
    kinds = {each.table: each for each in record_types(METADATA).values()}
    rows: list[tuple[bytes | None, bytes]] = [
        (None, encode_value(kinds["topic_record"], 0, {"name": name, "topic_id": topic_id(name)}))
        for name in (CONSUMER_OFFSETS, SHARE_STATE)
    ]
    partition = _defaults(kinds["partition_record"].value)
    for each in signs:
        topic = {"name": name_of("t", each), "topic_id": topic_id(each)}
        rows.append((None, encode_value(kinds["topic_record"], 0, topic)))
        value = partition | {"topic_id": topic_id(each), "leader": 1, "replicas": [1], "isr": [1]}
        rows.append((None, encode_value(kinds["partition_record"], 0, value)))
        for resource_type, resource, setting, letter in SETTINGS:
            config = {"resource_type": resource_type, "resource_name": name_of(resource, each)}
            config |= {"name": setting, "value": name_of(letter, each)}
            rows.append((None, encode_value(kinds["config_record"], 0, config)))
        # A plugin's setting: nobody but its owner knows the name.
        plugin = {"resource_type": 4, "resource_name": "", "value": "1"}
        plugin |= {"name": name_of("n", each)}
        rows.append((None, encode_value(kinds["config_record"], 0, plugin)))
        # Of one that is unset again only an event tells.
        for set_to in ("1", None):
            unset = {"resource_type": 2, "resource_name": name_of("t", each), "value": set_to}
            unset |= {"name": f"gone.{name_of('n', each)}"}
            rows.append((None, encode_value(kinds["config_record"], 0, unset)))
        retained = {"resource_type": 2, "resource_name": name_of("t", each)}
        retained |= {"name": "cleanup.policy", "value": "delete"}
        rows.append((None, encode_value(kinds["config_record"], 0, retained)))
    _write(log, f"{METADATA}-0", rows)


def _newest(kinds: list[RecordType]) -> Iterator[RecordType]:
    """Yield types of one release: layouts of older ones contradict what the newest say."""
    for each in kinds:
        if each.table not in (
            "consumer_group_partition_metadata",
            "share_group_partition_metadata",
        ):
            yield each


def _row(kind: RecordType, hostile: Hostile) -> tuple[bytes, bytes]:
    layout = kind.layouts[0] if kind.layouts else None
    key = hostile.struct(kind.key, 0, None)
    value = hostile.struct(kind.value, 0, layout)
    return encode_key(kind, kind.ids[0], key), encode_value(kind, 0, value, layout)


def _defaults(schema: Struct) -> dict[str, Any]:
    return {
        each.column: [] if each.is_array and 0 not in each.nullable else default_of(each, 0)
        for each in schema.at(0, None)
    }


def _write(log: LogDir, folder: str, rows: list[Any]) -> None:
    held = [Record(at, NOW + at * 1000, *row) for at, row in enumerate(rows)]
    log.partition(folder, {0: [batch(held).data]}, [(0, 0)])
