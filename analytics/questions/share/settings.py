"""Settings that share groups go by, with where each is known from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

DELIVERY_LIMIT: Final = "group.share.delivery.count.limit"
RECORD_LOCKS: Final = "group.share.partition.max.record.locks"
ISOLATION: Final = "share.isolation.level"
READ_COMMITTED: Final = "read_committed"
OFFSET_RESET: Final = "share.auto.offset.reset"
EARLIEST: Final = "earliest"
ALWAYS: Final = -1
ASSUMED: Final = "default_assumed"
BROKER_CONFIG: Final = "broker_config"
DYNAMIC: Final = "dynamic"


@dataclass(frozen=True)
class Setting:
    """A value, where it is from, and since when it holds.

    Attributes:
        value: The value.
        source: `ASSUMED`, `BROKER_CONFIG` or `DYNAMIC`.
        since_ms: In epoch milliseconds; `ALWAYS` where nothing tells of another one before.
    """

    value: int | str
    source: str
    since_ms: int = ALWAYS


@dataclass(frozen=True)
class ShareSettings:
    """What is in force.

    Attributes:
        otherwise: By name, for groups without an own value.
        of_groups: By group and name.
    """

    otherwise: Mapping[str, Setting]
    of_groups: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)

    def of(self, group: str, name: str) -> Setting:
        """Return what is in force for a group."""
        return self.of_groups.get(group, {}).get(name) or self.otherwise[name]

    def columns(self, groups: pa.ChunkedArray, name: str, type_: pa.DataType) -> _Columns:
        """Return the value in force for the group of each row, its source, and since when."""
        encoded = groups.combine_chunks().dictionary_encode()
        found = [self.of(group, name) for group in encoded.dictionary.to_pylist()]
        values = pa.array([each.value for each in found], type_).take(encoded.indices)
        sources = pa.array([each.source for each in found], pa.string())
        since = pa.array([each.since_ms for each in found], pa.int64())
        return values, sources.take(encoded.indices), since.take(encoded.indices)


_Columns = tuple[pa.Array, pa.Array, pa.Array]
