"""The table `record_growth`: how records grow with a group, and how many more would fit.

A classic group is one record, which holds all members; a broker refuses a batch above
`max.message.bytes`, and the group cannot rebalance any more (KAFKA-7149). What one more member, or
topic, takes is told by the group's own records of different lengths.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from analytics.questions.usage.cleaning.log_settings import DEFAULT
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.questions.usage.cleaning.log_settings import LogSettings
    from schemas.usage_rules import GrowingRecord

COLUMNS: Final = ("record_bytes", "is_tombstone")
"""The columns that are read, besides the key and the lists."""
HEADER: Final = 61
"""A batch that holds the record alone has a header, too: the limit is of batches."""
NOT_GROWN: Final = "its records did not grow with them"
NO_LIMIT: Final = "brokers took more than the default; the limit in force is not known"
ONLY_ONE: Final = "none of its records has any"

_MESSAGE: Final = "max.message.bytes"
_HISTORY, _RECORD = "history", "record"
_GROUP_FIELDS: Final = ("group", "group_id")
_KEY: Final = ["group_id", "record_type", "count"]
_POINTS: Final = pa.schema(
    [
        ("group_id", pa.string()),
        ("record_type", pa.string()),
        ("count", pa.int64()),
        ("bytes", pa.int64()),
    ]
)


@dataclass
class RecordGrowth:
    """The largest record of each group, type and number of members or topics.

    Attributes:
        growing: What grows with what, by the record type's table.
    """

    growing: Mapping[str, GrowingRecord]
    _points: list[pa.Table] = field(default_factory=list)

    def columns(self, table: str) -> list[str]:
        """Return the columns that are read of a decoded table."""
        return [*COLUMNS, *(f"value.{each}" for each in self.growing[table].lists)]

    def add(self, table: str, records: pa.RecordBatch) -> None:
        """Take records of a decoded table that grows."""
        kept = pc.and_(pc.invert(records["is_tombstone"]), pc.is_valid(records["record_bytes"]))
        records = records.filter(kept)
        if not records.num_rows:
            return
        value, key = records["value"], records["key"]
        names = {each.name for each in key.type}
        group = pc.struct_field(key, next(each for each in _GROUP_FIELDS if each in names))
        counts = pa.repeat(pa.scalar(0, pa.int64()), len(records))
        for path in self.growing[table].lists:
            length = pc.list_value_length(pc.struct_field(value, path.partition(".")[0]))
            counts = pc.add(counts, pc.fill_null(pc.cast(length, pa.int64()), 0))
        columns = [
            pc.cast(group, pa.string()),
            pa.repeat(table, len(records)),
            counts,
            pc.cast(records["record_bytes"], pa.int64()),
        ]
        self._points.append(_largest(pa.table(columns, schema=_POINTS)))

    def rows(self, settings: LogSettings) -> pa.Table:
        """Return the table `record_growth`, where the fewest more fit first."""
        points = _largest(pa.concat_tables([_POINTS.empty_table(), *self._points]))
        points = points.sort_by([(name, "ascending") for name in _KEY])
        ends = points.group_by(_KEY[:2], use_threads=False).aggregate(
            [(name, how) for name in ("count", "bytes") for how in ("first", "last")]
        )
        limit = round(settings.number(_MESSAGE, CONSUMER_OFFSETS, None))
        source = settings.in_force(_MESSAGE, CONSUMER_OFFSETS, None).source
        found = [self._row(each, limit, source) for each in ends.to_pylist()]
        order = [("more_fit", "ascending"), ("most_bytes", "descending")]
        by_name = [("group_id", "ascending"), ("record_type", "ascending")]
        return table_of("record_growth", found).sort_by([*order, *by_name])

    def _row(self, ends: Mapping[str, Any], limit: int, source: str) -> dict[str, Any]:
        least, most = ends["count_first"], ends["count_last"]
        low, high = ends["bytes_first"], ends["bytes_last"]
        batch = max(low, high) + HEADER
        is_unknown = source == DEFAULT and batch > limit
        each = (high - low) / (most - least) if most > least else None
        if each is None and most:
            each = high / most
        reason = None
        if each is None or each <= 0:
            each, reason = None, ONLY_ONE if not most else NOT_GROWN
        elif is_unknown:
            reason = NO_LIMIT
        return {
            "group_id": ends["group_id"],
            "record_type": ends["record_type"],
            "grows_with": self.growing[ends["record_type"]].grows_with,
            "least": least,
            "least_bytes": low,
            "most": most,
            "most_bytes": high,
            "bytes_each": each,
            "basis": _HISTORY if most > least else _RECORD,
            "limit_bytes": None if is_unknown else limit,
            "limit_source": source,
            "more_fit": None
            if each is None or is_unknown
            else max(int((limit - batch) // each), 0),
            "reason": reason,
        }


def _largest(points: pa.Table) -> pa.Table:
    found = points.group_by(_KEY).aggregate([("bytes", "max")])
    return found.rename_columns([*_KEY, "bytes"]).cast(_POINTS)
