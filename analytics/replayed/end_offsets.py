"""Where the logs of data topics start and end, as far as that is known for the instant asked about.

From `--end-offsets`, else, at the end of a dump, from the data directories beside it, or from what
a running cluster answered to `snapshot`; as numbers for questions that take samples of them.

What a running cluster answered to `snapshot`, as far as it holds at the instant asked about.

Where logs end and who leads is of the snapshot's instant: it holds at the end of the dump alone.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from analytics.epoch_times import EPOCH
from analytics.errors import InputNotRecognizedError
from analytics.replay.dump.coverage import last_snapshot
from analytics.side_files import (
    MOST_INT,
    bad,
    json_rows,
    plain_text,
    read_bytes,
    text_of,
    time_of,
    whole_number,
)
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import DataPartitionEntry, SnapshotEntry


_FIRST_ENDS: Final = {
    "topic": pl.String,
    "partition": pl.Int32,
    "first_end_offset": pl.Int64,
    "later_end_offset": pl.Int64,
}
"""Where a log ended when a snapshot began, and when all commits had been read."""
_LEADERS: Final = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("leader", pa.int32())],
)


def snapshot_at(state: ReplayedWorkspace) -> SnapshotEntry | None:
    """Return what the cluster answered; None where it did not, or before the end of the dump."""
    return last_snapshot(state.manifest) if state.is_end else None


def answered_ends(state: ReplayedWorkspace) -> Iterator[dict[str, Any]]:
    """Yield `topic`, `partition`, `log_start_offset` and `log_end_offset` of logs.

    Where commits were read that may have come after the first answer, ends are those of the second
    one, when all of them had been read: none of them is beyond its log's end.
    """
    snapshot = snapshot_at(state)
    for topic in snapshot["topics"] if snapshot is not None else ():
        for number, _, start, end, later in topic["partitions"]:
            until = later if _is_later(snapshot) and later is not None else end
            if until is not None:
                yield {
                    "topic": topic["topic"],
                    "partition": number,
                    "log_start_offset": start,
                    "log_end_offset": until,
                }


def with_first_ends(ends: pl.DataFrame, state: ReplayedWorkspace) -> pl.DataFrame:
    """Add where logs ended at first where `answered_ends` has a later answer.

    Args:
        ends: `topic`, `partition`.
        state: A replayed workspace.

    Returns:
        The rows with `first_end_offset` and `later_end_offset`; null where there is one answer.
    """
    snapshot = snapshot_at(state)
    rows = [
        (topic["topic"], number, end, later)
        for topic in (snapshot["topics"] if _is_later(snapshot) and snapshot else ())
        for number, _, _, end, later in topic["partitions"]
        if end is not None and later is not None
    ]
    first = pl.DataFrame(rows, _FIRST_ENDS, orient="row")
    return ends.join(first, ["topic", "partition"], "left", maintain_order="left")


def _is_later(snapshot: SnapshotEntry | None) -> bool:
    return snapshot is not None and snapshot["read_beyond_ends"]


def ends_statement(state: ReplayedWorkspace, end_offsets: str | None) -> tuple[str, ...]:
    """Return a sentence on when logs ended where an answer has them; none where nobody answered.

    Args:
        state: A replayed workspace.
        end_offsets: A file that goes before what the cluster answered.
    """
    snapshot = snapshot_at(state)
    if snapshot is None:
        return ()
    at = snapshot["finished_at"] if _is_later(snapshot) else snapshot["taken_at"]
    unless = "" if end_offsets is None else f", unless {end_offsets} says otherwise"
    return (f"logs of data topics end where the cluster answered at {at}{unless}",)


def without_settings(state: ReplayedWorkspace) -> frozenset[str]:
    """Return the topics whose own settings the cluster did not answer."""
    snapshot = snapshot_at(state)
    topics = snapshot["topics"] if snapshot is not None else ()
    return frozenset(each["topic"] for each in topics if each["settings"] is None)


def coordinator_leaders(state: ReplayedWorkspace) -> pa.Table:
    """Return `topic`, `partition`, `leader` of partitions of `__consumer_offsets`.

    From the metadata log; where the dump has none, as the cluster answered.
    """
    known = state.tables.read("partition_leaders")
    snapshot = snapshot_at(state)
    if known.num_rows or snapshot is None:
        return known
    rows = [
        {"topic": CONSUMER_OFFSETS, "partition": number, "leader": leader}
        for number, leader in _answered_leaders(snapshot)
    ]
    return pa.Table.from_pylist(rows, _LEADERS)


def _answered_leaders(snapshot: SnapshotEntry) -> Iterable[tuple[int | None, int | None]]:
    for topic in snapshot["topics"]:
        if topic["topic"] == CONSUMER_OFFSETS:
            yield from ((each[0], each[1]) for each in topic["partitions"])


SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
    ]
)
_NEEDED = ("topic", "partition", "log_end_offset")
_PRINTED = re.compile(r"[\w.-]+:\d+:\d*", re.ASCII)
_LOOKED_FOR = (
    "looked for CSV, JSON or Parquet with topic, partition, log_start_offset, log_end_offset and, "
    "if it has several samples, timestamp; or for what kafka-get-offsets prints"
)
Row = Mapping[str, Any]

SAMPLES = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
    ]
)
"""Where a log started and ended, and when."""


def end_offsets_at(replayed: ReplayedWorkspace, path: str | None) -> pa.Table:
    """Return log start and end offsets of data partitions at the instant.

    Args:
        replayed: Says the instant.
        path: A side file, which goes before what the dump says; where it names no log start, the
            dump does.

    Returns:
        `topic`, `partition`, `log_start_offset`, `log_end_offset`; a partition of which nothing
        is known for that instant has no row.

    Raises:
        InputNotRecognizedError: The side file is none.
        InputUnreadableError: It cannot be read.
    """
    rows = _known_ends(replayed, path)
    columns = {name: [each.get(name) for each in rows] for name in SCHEMA.names}
    return pa.table(columns, schema=SCHEMA)


def _known_ends(replayed: ReplayedWorkspace, path: str | None) -> list[dict[str, Any]]:
    """Return the last that is known of each partition; without `timestamp` where it is of now."""
    rows = _samples_at(read_end_offsets(path), replayed) if path is not None else []
    if replayed.is_end:
        beside = {(each["topic"], each["partition"]): each for each in _beside_the_dump(replayed)}
        for each in rows:
            found = beside.pop((each["topic"], each["partition"]), None)
            if found is not None and each["log_start_offset"] is None:
                each["log_start_offset"] = found["log_start_offset"]
        rows += beside.values()
        held = {(each["topic"], each["partition"]): each for each in rows}
        for each in answered_ends(replayed):
            known = held.get((each["topic"], each["partition"]))
            if known is None:
                rows.append(each)
            elif known["log_start_offset"] is None:
                known["log_start_offset"] = each["log_start_offset"]
    return rows


def end_offset_samples(replayed: ReplayedWorkspace, path: str | None, as_of: datetime) -> pa.Table:
    """Return all that is known of where logs ended, up to the instant (`SAMPLES`).

    Args:
        replayed: Says the instant.
        path: A side file.
        as_of: When the instant is: what has no time of its own was sampled then.
    """
    given = read_end_offsets(path) if path is not None else []
    rows = [each for each in given if each["timestamp"] and each["timestamp"] <= as_of]
    now = [each for each in _known_ends(replayed, path) if not each.get("timestamp")]
    rows += [{**each, "timestamp": as_of} for each in now]
    return pa.Table.from_pylist(rows, schema=SAMPLES)


def read_end_offsets(path: str) -> list[dict[str, Any]]:
    """Read a side file of any form.

    Raises:
        InputNotRecognizedError: It has not the columns it needs, or not what they need.
        InputUnreadableError: It cannot be read.
    """
    data = read_bytes(path)
    try:
        rows = _rows(data, path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputNotRecognizedError(
            f"{path}: {' '.join(str(error).split()):.200}; {_LOOKED_FOR}"
        ) from error
    return [_row(each, f"{path}, row {number}") for number, each in enumerate(rows, 1)]


def _rows(data: bytes, path: str) -> list[Any]:
    if data[:4] == b"PAR1":
        return list(pq.read_table(io.BytesIO(data)).to_pylist())
    text = text_of(data, path)
    if text.lstrip()[:1] in ("[", "{"):
        return json_rows(text, path)
    if _PRINTED.fullmatch(text.lstrip().partition("\n")[0].strip()):
        return _printed_rows(text)
    # What columns hold is for `_row` to judge: a topic may be called 007.
    names = text.lstrip("\r\n").partition("\n")[0].strip().split(",")
    options = pyarrow.csv.ConvertOptions(
        column_types={each.strip().strip('"'): pa.string() for each in names}
    )
    return list(
        pyarrow.csv.read_csv(io.BytesIO(text.encode()), convert_options=options).to_pylist()
    )


def _printed_rows(text: str) -> list[dict[str, Any]]:
    """Return what kafka-get-offsets printed: ``topic:partition:offset``, a line each.

    Of a partition that it could not ask for it prints no offset: there is nothing to be known.
    """
    rows = []
    for line in text.splitlines():
        topic, partition, offset = line.strip().rsplit(":", 2) if line.strip() else ("", "", "")
        if offset:
            rows.append({"topic": topic, "partition": partition, "log_end_offset": offset})
    return rows


def _row(row: Any, where: str) -> dict[str, Any]:  # noqa: ANN401 - as the file has it
    if not isinstance(row, Mapping):
        raise bad(where, "the row", row, _LOOKED_FOR.removeprefix("looked for "))
    if missing := [name for name in _NEEDED if row.get(name) in (None, "")]:
        raise InputNotRecognizedError(f"{where}: there is no {missing[0]}; {_LOOKED_FOR}")
    start = row.get("log_start_offset")
    return {
        "topic": plain_text(row["topic"], "topic", where),
        "partition": whole_number(row["partition"], "partition", where, most=MOST_INT),
        "log_start_offset": None
        if start in (None, "")
        else whole_number(start, "log_start_offset", where),
        "log_end_offset": whole_number(row["log_end_offset"], "log_end_offset", where),
        "timestamp": time_of(row.get("timestamp"), "timestamp", where),
    }


def _samples_at(
    rows: Iterable[dict[str, Any]], replayed: ReplayedWorkspace
) -> list[dict[str, Any]]:
    """Return the last sample of each partition that is not later than the instant.

    A sample without a time is of the instant: the person who gave it says so.
    """
    time = replayed.as_of["time"]
    latest = datetime.fromisoformat(time) if time is not None else None
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for each in sorted(rows, key=lambda row: row["timestamp"] or EPOCH):
        if latest is None or each["timestamp"] is None or each["timestamp"] <= latest:
            found[each["topic"], each["partition"]] = each
    return list(found.values())


def _beside_the_dump(replayed: ReplayedWorkspace) -> list[dict[str, Any]]:
    """Return what the data directories say: of the replicas that hold all that was committed."""
    rows = _partition_leaders(replayed)
    leaders = _leaders(replayed, rows)
    return [
        {
            "topic": topic,
            "partition": partition,
            "log_start_offset": _start(held, leaders.get((topic, partition))),
            # What every one of them has is the high watermark, which Kafka's tools call the end.
            "log_end_offset": min(each["log_end_offset"] for each in held),
        }
        for (topic, partition), held in _true_copies(replayed, rows).items()
    ]


def _start(held: Sequence[DataPartitionEntry], leader: str | None) -> int | None:
    """Return where the leader's log starts; of copies without one, where the longest does.

    Each replica deletes segments by its own clock; clients read what the leader has.
    """
    of_leader = [each["log_start_offset"] for each in held if each["copy"] == leader]
    starts = of_leader or [each["log_start_offset"] for each in held]
    known = [each for each in starts if each is not None]
    return min(known) if len(known) == len(starts) else None


def _partition_leaders(replayed: ReplayedWorkspace) -> list[Row]:
    """Return who leads partitions and who has all that was committed."""
    tables = StoredTables(replayed.tables.workspace)
    columns = ["topic", "partition", "leader", "isr", "elr"]
    found: list[Row] = tables.read("partition_leaders", columns).to_pylist()
    return found


def _leaders(replayed: ReplayedWorkspace, rows: Iterable[Row]) -> dict[tuple[str, int], str]:
    """Return the copies of the brokers that lead, by partition."""
    names = {each["node_id"]: each["name"] for each in replayed.manifest["copies"]}
    return {
        (each["topic"], each["partition"]): names[each["leader"]]
        for each in rows
        if each["leader"] in names
    }


def true_copies(replayed: ReplayedWorkspace) -> dict[tuple[str, int], list[DataPartitionEntry]]:
    """Return the copies of each data partition that hold all that was committed, as manifests do.

    A partition of which nothing says whose copy is the truth is left out.
    """
    return _true_copies(replayed, _partition_leaders(replayed))


def read_copies(replayed: ReplayedWorkspace) -> dict[tuple[str, int], tuple[str, str | None]]:
    """Return the copy of each data partition that clients read, and its topic's id.

    The leader's where it is there, else the longest of those that hold all that was committed.
    """
    rows = _partition_leaders(replayed)
    leaders = _leaders(replayed, rows)
    found = {}
    for key, held in _true_copies(replayed, rows).items():
        leader = leaders.get(key)
        best = max(held, key=lambda each: (each["copy"] == leader, each["log_end_offset"]))
        found[key] = best["copy"], best["topic_id"]
    return found


def _true_copies(
    replayed: ReplayedWorkspace, rows: Iterable[Row]
) -> dict[tuple[str, int], list[DataPartitionEntry]]:
    manifest = replayed.manifest
    copies: dict[tuple[str, int], list[DataPartitionEntry]] = defaultdict(list)
    for each in manifest.get("data_partitions", ()):
        if each["is_exact"]:
            copies[each["topic"], each["partition"]].append(each)
    nodes = {each["name"]: each["node_id"] for each in manifest["copies"]}
    preferred = manifest["options"].get("prefer_copy")
    in_sync = _in_sync(rows)
    found = {}
    for key, held in copies.items():
        if preferred is not None:
            chosen = [each for each in held if each["copy"] == preferred]
        elif key in in_sync:
            chosen = [each for each in held if nodes.get(each["copy"]) in in_sync[key]]
        else:
            # Without a metadata log nothing says whose copy is the truth, unless all say the same.
            chosen = held if len({each["log_end_offset"] for each in held}) == 1 else []
        if chosen:
            found[key] = chosen
    return found


def _in_sync(rows: Iterable[Row]) -> dict[tuple[str, int], set[int]]:
    """Return the brokers that hold all that was committed, by partition."""
    found = {}
    for each in rows:
        replicas = set(each["isr"] or ()) or set(each["elr"] or ())
        if each["leader"] is not None and each["leader"] >= 0:
            replicas |= {each["leader"]}
        if replicas:
            found[each["topic"], each["partition"]] = replicas
    return found


@dataclass(frozen=True)
class EndOffsetSamples:
    """Samples in order of partition and time.

    Attributes:
        times: When each was taken, in epoch milliseconds.
        ends: The end offset then.
        places: By topic and partition, the first of its samples and the one after its last.
    """

    times: NDArray[np.int64]
    ends: NDArray[np.int64]
    places: Mapping[tuple[str, int], tuple[int, int]]

    @classmethod
    def of(cls, samples: pa.Table) -> EndOffsetSamples:
        """Take rows of `SAMPLES`; those without a time or an end are left out."""
        known = pc.and_(pc.is_valid(samples["timestamp"]), pc.is_valid(samples["log_end_offset"]))
        rows = samples.filter(known).sort_by(
            [("topic", "ascending"), ("partition", "ascending"), ("timestamp", "ascending")]
        )
        # Sorted, a partition is a run of rows; grouped rows would come in an order of their own.
        topic = pc.dictionary_encode(rows["topic"].combine_chunks()).indices.to_numpy()
        partition = rows["partition"].to_numpy()
        is_new = np.r_[True, (np.diff(topic) != 0) | (np.diff(partition) != 0)][: rows.num_rows]
        first = np.flatnonzero(is_new)
        ends = np.r_[first[1:], rows.num_rows].tolist()
        named = rows.select(["topic", "partition"]).take(pa.array(first))
        keys = zip(named["topic"].to_pylist(), named["partition"].to_pylist(), strict=True)
        places = dict(zip(keys, zip(first.tolist(), ends[: len(first)], strict=True), strict=True))
        return cls(_milliseconds(rows["timestamp"]), _numbers(rows["log_end_offset"]), places)


def _milliseconds(times: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return instants as epoch milliseconds, rounded down."""
    micros = _numbers(pc.cast(times, pa.int64()))
    whole: NDArray[np.int64] = micros // 1000
    return whole


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return np.ascontiguousarray(numbers)
