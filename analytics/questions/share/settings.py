"""Settings that share groups go by, with where each is known from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

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

    def with_setting(self, rows: pl.DataFrame, name: str, column: str) -> pl.DataFrame:
        """Add what is in force for the group of each row: its value, source, and since when.

        Args:
            rows: `group_id`.
            name: Of the setting.
            column: What the value's column is called; ``<column>_source`` and ``<column>_since``
                (epoch milliseconds, `ALWAYS`) are the others.
        """
        otherwise = self.otherwise[name]
        names = (column, f"{column}_source", f"{column}_since")
        kind = pl.String() if isinstance(otherwise.value, str) else pl.Int64()
        own = [
            (group, each.value, each.source, each.since_ms)
            for group, values in self.of_groups.items()
            if (each := values.get(name)) is not None
        ]
        types = dict(zip(names, (kind, pl.String(), pl.Int64()), strict=True))
        of_groups = pl.DataFrame(own, {"group_id": pl.String(), **types}, orient="row")
        in_force = (otherwise.value, otherwise.source, otherwise.since_ms)
        return rows.join(of_groups, "group_id", "left", maintain_order="left").with_columns(
            pl.col(each).fill_null(pl.lit(value, types[each]))
            for each, value in zip(names, in_force, strict=True)
        )
