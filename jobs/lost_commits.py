"""Commits that only a line of history has which did not survive, read with Arrow."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.decode.selection import names_wanted
from analytics.workspace import DECODED, DIVERGED

if TYPE_CHECKING:
    from jobs.replayed import Replayed

OFFSETS_TOPIC = "__consumer_offsets"
_NO_PRODUCER = -1
_KEY = ("group_id", "topic", "partition")
Row = Mapping[str, Any]


def lost_commits(state: Replayed) -> list[dict[str, Any]]:
    """Return what was committed last on each lost line, where it was not removed there.

    Returns:
        `group_id`, `topic`, `partition`, `committed_offset`, `at` (when the leader of the surviving
        line was elected; None where the dump does not say), `copy`, `coordinator_partition` and
        `record_offset` (in the lost line).
    """
    followed = {(each.topic, each.partition, each.copy) for each in state.lines}
    lines = [
        each
        for each in state.tables.read("divergences").to_pylist()
        if (each["topic"], each["partition"], each["copy"]) not in followed
    ]
    return [
        row for line in lines if line["topic"] == OFFSETS_TOPIC for row in _last_of(state, line)
    ]


def _last_of(state: Replayed, line: Row) -> Iterator[dict[str, Any]]:
    records = _records(state, line, "offset_commit", ("key", "value", "producer_id"))
    if records is None or not records.num_rows:
        return
    group, topic, partition = (
        pc.struct_field(records["key"], name) for name in ("group", "topic", "partition")
    )
    rows = pa.table(
        {
            **dict(zip(_KEY, (group, topic, partition), strict=True)),
            "committed_offset": pc.struct_field(records["value"], "offset"),
            "record_offset": records["offset"],
            "producer_id": pc.fill_null(records["producer_id"], _NO_PRODUCER),
        }
    )
    wanted = state.tables.selection
    names = names_wanted(
        pc.unique(rows["group_id"]).to_pylist(), wanted.groups, wanted.exclude_groups
    )
    rows = rows.filter(pc.is_in(rows["group_id"], pa.array(names, pa.string())))
    in_effect = _in_effect(rows, _markers(state, line))
    last = in_effect.group_by(list(_KEY)).aggregate([("record_offset", "max")])
    is_last = pc.is_in(in_effect["record_offset"], last["record_offset_max"].combine_chunks())
    for row in in_effect.filter(is_last).to_pylist():
        if row["committed_offset"] is not None:
            yield {
                **{name: row[name] for name in (*_KEY, "committed_offset", "record_offset")},
                "at": line["elected_at"],
                "copy": line["copy"],
                "coordinator_partition": line["partition"],
            }


def _in_effect(rows: pa.Table, markers: Mapping[int, list[tuple[int, str]]]) -> pa.Table:
    """Leave out what was pending in a transaction that the line has no COMMIT of."""
    committed = []
    for producer, offset in zip(
        rows["producer_id"].to_pylist(), rows["record_offset"].to_pylist(), strict=True
    ):
        ends = markers.get(producer, [])
        place = bisect_right(ends, offset, key=lambda end: end[0])
        is_ended = place < len(ends) and ends[place][1] == "COMMIT"
        committed.append(producer == _NO_PRODUCER or is_ended)
    return rows.drop_columns(["producer_id"]).filter(pa.array(committed, pa.bool_()))


def _markers(state: Replayed, line: Row) -> dict[int, list[tuple[int, str]]]:
    """Return where transactions end in a lost line, and how, by producer."""
    records = _records(state, line, "control_markers", ("producer_id", "control_type"))
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for row in records.to_pylist() if records is not None else ():
        if row["control_type"] in {"COMMIT", "ABORT"}:
            found[row["producer_id"]].append((row["offset"], row["control_type"]))
    return found


def _records(state: Replayed, line: Row, name: str, columns: tuple[str, ...]) -> pa.Table | None:
    """Return records of a lost line at the instant in order; None where the workspace has none."""
    source = state.source
    path = source.path(f"{DIVERGED}/{line['copy']}/{DECODED}/{name}")
    if source.filesystem.get_file_info(path).type is not fs.FileType.Directory:
        return None
    records = ds.dataset(path, filesystem=source.filesystem, format="parquet")
    where = (
        (pc.field("topic") == line["topic"])
        & (pc.field("partition") == line["partition"])
        & (pc.field("offset") >= line["diverges_at"])
    )
    end = state.as_of["offsets"].get(f"{line['topic']}-{line['partition']}")
    if end is not None:
        where &= pc.field("offset") < end
    if (time := state.as_of["time"]) is not None:
        stamp = pa.scalar(datetime.fromisoformat(time), records.schema.field("timestamp").type)
        where &= pc.field("timestamp").is_null() | (pc.field("timestamp") <= stamp)
    return records.to_table(columns=["offset", *columns], filter=where).sort_by("offset")
