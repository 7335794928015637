"""What the directories of data topics beside a dump tell of their logs through time.

No record of them was ever read: these are sizes of files, entries of time indexes, and headers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.dump.files.data_logs import SEGMENTS, STABLE_ENDS, TIMES
from analytics.replayed.end_offsets import SAMPLES, read_copies
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import DATA_LOGS, reading, table_in

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_PLACE: Final = ["topic", "partition"]
_WHOSE: Final = [*_PLACE, "copy"]
STABLE: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("log_end_offset", pa.int64()),
        ("last_stable_offset", pa.int64()),
    ]
)
"""Where logs end for readers of committed records."""
INTERPOLATED: Final = "interpolated"
EXACT: Final = "exact"
_ENDS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
        ("log_end_bound", pa.string()),
        ("log_end_least", pa.int64()),
        ("log_end_most", pa.int64()),
    ]
)


@dataclass(frozen=True)
class DataLogs:
    """Logs of data topics, of one copy each: the leader's where it is there.

    Attributes:
        segments: `topic`, `partition`, and what else the table `data_segments` has of files.
        times: Likewise the table `data_log_times`.
        stable: Where they end for readers of committed records, at the end of the dump (`STABLE`).
    """

    segments: pa.Table
    times: pa.Table
    stable: pa.Table

    def samples(self, as_of: datetime) -> pa.Table:
        """Return where logs ended, and when, by the brokers' clocks (`SAMPLES`)."""
        by_broker = self.times.filter(
            pc.and_(
                self.times["is_append_time"],
                pc.less_equal(
                    self.times["timestamp"], pa.scalar(as_of, self.times["timestamp"].type)
                ),
            )
        )
        return _as_samples(by_broker)

    def written(self) -> pa.Table:
        """Return when records were written, by whatever clock; the end is the offset after one."""
        return _as_samples(self.times)

    def ends_at(self, as_of: datetime) -> pa.Table:
        """Return where logs ended at an instant before the end, as far as brokers' clocks tell.

        Returns:
            `topic`, `partition`, `log_start_offset` (null: nothing tells), `log_end_offset`;
            `log_end_bound`, exact or interpolated; of the latter `log_end_least`, `log_end_most`.
        """
        times = self.times.filter(self.times["is_append_time"])
        rows = times.sort_by([(name, "ascending") for name in (*_PLACE, "offset")]).to_pylist()
        found = []
        for place, each in enumerate(rows):
            after = rows[place + 1] if place + 1 < len(rows) else None
            if after is not None and any(after[name] != each[name] for name in _PLACE):
                after = None
            if each["timestamp"] > as_of or (after is not None and after["timestamp"] <= as_of):
                continue
            end = {name: each[name] for name in _PLACE}
            if after is None:
                end |= {"log_end_offset": each["offset"] + 1, "log_end_bound": EXACT}
            else:
                end |= _between(each, after, as_of)
            found.append(end)
        return pa.Table.from_pylist(found, _ENDS)


def _between(before: dict[str, Any], after: dict[str, Any], as_of: datetime) -> dict[str, Any]:
    """Return where a log ended between two entries: the later record was not there yet."""
    begun, ended = before["timestamp"], after["timestamp"]
    least, most = int(before["offset"]) + 1, int(after["offset"])
    if least >= most:
        return {"log_end_offset": least, "log_end_bound": EXACT}
    share = (as_of - begun) / (ended - begun)
    return {
        "log_end_offset": least + int(share * (most - least)),
        "log_end_bound": INTERPOLATED,
        "log_end_least": least,
        "log_end_most": most,
    }


def data_logs(replayed: ReplayedWorkspace) -> DataLogs:
    """Return what the workspace has of logs whose copy is the truth at the instant.

    Before the end that is the log of a topic that is still the same one; where brokers' lines part
    the surviving ones say nothing of then.
    """
    chosen = read_copies(replayed)
    if not replayed.is_end:
        alive = _alive(replayed)
        chosen = {
            place: (copy, topic_id)
            for place, (copy, topic_id) in chosen.items()
            if topic_id is not None and alive.get(place[0]) == topic_id
        }
        if replayed.lines or replayed.as_of["time"] is None:
            chosen = {}
    columns = [
        pa.array([topic for topic, _ in chosen], pa.string()),
        pa.array([partition for _, partition in chosen], pa.int32()),
        pa.array([copy for copy, _ in chosen.values()], pa.string()),
    ]
    copies = pa.table(columns, names=_WHOSE)
    stable = _of(replayed, "data_stable_ends", STABLE_ENDS, copies).select(STABLE.names)
    return DataLogs(
        _of(replayed, "data_segments", SEGMENTS, copies),
        _of(replayed, "data_log_times", TIMES, copies),
        stable if replayed.is_end else stable.slice(0, 0),
    )


def _alive(replayed: ReplayedWorkspace) -> dict[str, str]:
    """Return the ids of the topics that were there at the instant."""
    topics = StoredTables(replayed.tables.workspace).read(
        "topics", ["topic", "topic_id", "deleted_at"]
    )
    return {
        each["topic"]: each["topic_id"]
        for each in topics.to_pylist()
        if each["deleted_at"] is None and each["topic_id"] is not None
    }


def _of(replayed: ReplayedWorkspace, name: str, schema: pa.Schema, copies: pa.Table) -> pa.Table:
    """Read a table; a workspace of an earlier release has none, and tells nothing."""
    path = replayed.source.path(f"{DATA_LOGS}/{name}")
    with reading(path):
        found = table_in(replayed.source.filesystem, path)
        if found is None:
            return schema.empty_table().drop_columns(["copy"])
        topics = pc.unique(copies["topic"]).to_pylist()
        rows = found.to_table(filter=pc.field("topic").isin(pa.array(topics, pa.string())))
    kept = rows.cast(schema).join(copies, _WHOSE, join_type="inner")
    return kept.select([each for each in schema.names if each != "copy"])


def _as_samples(times: pa.Table) -> pa.Table:
    columns = {
        **{name: times[name] for name in (*_PLACE, "timestamp")},
        "log_start_offset": pa.nulls(times.num_rows, pa.int64()),
        "log_end_offset": pc.add(times["offset"], 1),
    }
    return pa.table([columns[name] for name in SAMPLES.names], schema=SAMPLES)
