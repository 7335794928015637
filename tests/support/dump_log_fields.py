"""Whether a decoded struct says what the tool printed as JSON, field by field.

Column names are the tool's names in snake_case. What the tool leaves out is either a field the
value's version does not have (null in our tables) or a tagged field at its default, which the
tables fill in; the defaults are listed here once more, so that a wrong one in the schemas shows.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

from tests.support.consumer_protocol import is_newer, parse_assignment, parse_subscription

ZERO_UUID = "A" * 22

# (table, field) -> (first version that has the tag, default). Tagged fields whose default is null
# need no entry.
TAGGED_DEFAULTS: dict[tuple[str, str], tuple[int, Any]] = {
    ("offset_commit", "topic_id"): (4, ZERO_UUID),
    ("consumer_group_metadata", "metadata_hash"): (0, 0),
    ("consumer_group_target_assignment_metadata", "assignment_timestamp"): (0, 0),
    ("share_group_target_assignment_metadata", "assignment_timestamp"): (0, 0),
    ("streams_group_target_assignment_metadata", "assignment_timestamp"): (0, 0),
    ("streams_group_metadata", "validated_topology_epoch"): (0, -1),
    ("streams_group_metadata", "stored_description_topology_epoch"): (0, -1),
    ("streams_group_metadata", "failed_description_topology_epoch"): (0, -1),
    ("share_snapshot", "delivery_complete_count"): (0, -1),
    ("share_update", "delivery_complete_count"): (0, -1),
    ("transaction_log", "previous_producer_id"): (1, -1),
    ("transaction_log", "next_producer_id"): (1, -1),
    ("transaction_log", "next_producer_epoch"): (1, -1),
    ("transaction_log", "client_transaction_version"): (1, 0),
    ("partition_record", "leader_recovery_state"): (0, 0),
    ("partition_change_record", "leader"): (0, -2),
    ("partition_change_record", "leader_recovery_state"): (0, -1),
    ("register_broker_record", "log_dirs"): (3, []),
    ("broker_registration_change_record", "fenced"): (0, 0),
    ("broker_registration_change_record", "in_controlled_shutdown"): (1, 0),
    ("broker_registration_change_record", "log_dirs"): (2, []),
}

# Bytes the tool prints as an object, and how to read them.
EMBEDDED = {
    "subscription": parse_subscription,
    "assignment": parse_assignment,
}


def snake_case(name: str) -> str:
    """``expireTimestamp`` -> ``expire_timestamp``."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


@dataclass
class Tally:
    """Fields compared, and the differences in words."""

    fields: int = 0
    differences: list[str] = field(default_factory=list)

    def equal(self, where: str, expected: Any, actual: Any) -> None:
        """Compare two values that must be the same, type included."""
        self.fields += 1
        if type(expected) is not type(actual) or expected != actual:
            self.differences.append(f"{where}: expected {expected!r}, decoded {actual!r}")


@dataclass(frozen=True)
class Comparison:
    """The comparison of one struct; ``table`` and ``version`` decide about what was not printed."""

    tally: Tally
    table: str
    version: int
    is_partial: bool = False

    def struct(self, where: str, expected: dict[str, Any], actual: dict[str, Any] | None) -> None:
        """Compare an object with a struct."""
        if actual is None:
            self.tally.equal(where, expected, None)
            return
        printed = {snake_case(name): value for name, value in expected.items()}
        for column in sorted(printed.keys() - actual.keys()):
            self.tally.differences.append(f"{where}: no column {column!r}")
        for column, value in actual.items():
            inner = f"{where}.{column}"
            if column.endswith("_decoded") and column.removesuffix("_decoded") in actual:
                continue
            if column in printed:
                self._value(inner, printed[column], value, actual)
            elif not self.is_partial:
                since, default = TAGGED_DEFAULTS.get((self.table, column), (0, None))
                self.tally.equal(inner, default if self.version >= since else None, value)

    def _value(self, where: str, expected: Any, actual: Any, siblings: dict[str, Any]) -> None:
        column = where.rsplit(".", 1)[-1]
        if self.is_partial and column == "transaction_partitions":
            found = [
                (each["topic"], number) for each in actual or [] for number in each["partition_ids"]
            ]
            self.tally.equal(where, expected, sorted(found))
        elif isinstance(actual, bytes):
            self._bytes(where, expected, actual, siblings)
        elif isinstance(expected, dict):
            self.struct(where, expected, actual)
        elif isinstance(expected, list) and isinstance(actual, list):
            self.tally.equal(f"{where}.length", len(expected), len(actual))
            for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
                self._value(f"{where}[{index}]", one, other, siblings)
        else:
            self.tally.equal(where, expected, actual)

    def _bytes(self, where: str, expected: Any, actual: bytes, siblings: dict[str, Any]) -> None:
        column = where.rsplit(".", 1)[-1]
        decoded = siblings.get(f"{column}_decoded")
        if isinstance(expected, dict):
            # Newer embedded versions than the tool knows are read as the newest it knows.
            self.tally.equal(where, expected, EMBEDDED[column](actual))
            self._embedded(f"{where}_decoded", expected, decoded)
            return
        self.tally.equal(where, base64.b64decode(expected), actual)
        # The tool leaves as it is: the protocol metadata of a classic member, messages that end
        # early, and those of a version it does not know.
        if column == "metadata":
            readable = parse_subscription(actual)
        else:
            readable = EMBEDDED[column](actual) if column in EMBEDDED else None
            if readable and not (is_newer(actual) or "fieldsWritten" in readable):
                readable = None
        if readable is not None:
            self._embedded(f"{where}_decoded", readable, decoded)
            return
        if f"{column}_decoded" in siblings:
            self.tally.equal(f"{where}_decoded", None, decoded)

    def _embedded(
        self, where: str, expected: dict[str, Any], actual: dict[str, Any] | None
    ) -> None:
        inner = Comparison(self.tally, "embedded", 0)
        inner.struct(where, expected, actual)
