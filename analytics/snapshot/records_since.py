"""What was written behind the ends of a snapshot's logs while its cluster was asked.

A group's state may differ from the snapshot's because its coordinator wrote since. So the logs are
read on from where they ended, up to where they end once all has been answered, and their keys are
noted as rows of `cluster_answers`: whose records there are. No such record is part of the dump.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.decode.decoding import decode_dump
from analytics.decode.elections import known_leaders
from analytics.decode.tasks import Settings
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.files.inputs import recognize
from analytics.snapshot.cluster_connection import ClusterConnection, NotAnsweredError
from analytics.snapshot.cluster_description import described_topics, log_edges, with_edges
from analytics.snapshot.log_folder import LogWriter, write_root_files
from analytics.snapshot.log_reading import LogReader
from schemas.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.snapshot.answer_file import AnswerRows, AnswerWriter
    from schemas.snapshot import Log, Partition

TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
"""Whose records groups and share partitions are made of."""
READ, RECORD, MARKER = "log_read", "record", "marker"
"""Kinds of rows: how far a log was read, a key in it, and that transactions ended in it."""
OF_GROUP, OF_OFFSET, OF_SHARE_PARTITION = "group", "offset", "share_partition"
"""Fields of rows of `RECORD`: what their key is about."""
_GROUP_KEYS: Final = ("group_id", "group")
_NOT_DESCRIBED: Final = "the topic or the partition is gone"


def write_records_since(
    cluster: ClusterConnection, reader: LogReader, logs: Iterable[Log], writer: AnswerWriter
) -> None:
    """Read logs on from where a snapshot has read them, and write whose records there are.

    Args:
        cluster: Reached already.
        reader: Of logs.
        logs: As far as they were read; those that could not be are left out.
        writer: Of rows.
    """
    read = [each for each in logs if each.topic in TOPICS and each.log_end_offset is not None]
    now = _partitions_now(cluster, {each.topic for each in read})
    rows = writer.rows()
    with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
        ends: dict[tuple[str, int], int] = {}
        starts: dict[tuple[str, int], int] = {}
        for log in read:
            place = log.topic, log.partition
            begin = log.next_offset if log.next_offset is not None else log.log_end_offset
            assert begin is not None
            end = _read_on(reader, now.get(place, _NOT_DESCRIBED), log, begin, Path(folder))
            if isinstance(end, str):
                _add_read(rows, place, None, end)
                continue
            _add_read(rows, place, end, None)
            if end > begin:
                starts[place], ends[place] = begin, end
        if ends:
            write_root_files(Path(folder), None, starts, ends)
            with _decoded(folder) as tables:
                for table, found in tables:
                    _add_keys(rows, table, found)
    writer.write(rows)


def _partitions_now(
    cluster: ClusterConnection, topics: Iterable[str]
) -> Mapping[tuple[str, int], Partition | str]:
    names = sorted(topics)
    try:
        described = described_topics(cluster, names)
    except NotAnsweredError as error:
        return _Everywhere(str(error))
    edges = log_edges(cluster, described.by_name)
    return {
        (topic.topic, each.partition): each
        for topic in described.by_name.values()
        for each in with_edges(topic, edges).partitions
    }


class _Everywhere(dict[tuple[str, int], "Partition | str"]):
    """One reason for all partitions."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def get(self, _key: object, _default: object = None) -> str:
        return self._reason


def _read_on(
    reader: LogReader, partition: Partition | str, log: Log, begin: int, folder: Path
) -> int | str:
    """Return where the log ends by now, all of it up to there being read; or why it is not."""
    if isinstance(partition, str):
        return partition
    end = partition.log_end_offset
    if end is None or partition.log_start_offset is None:
        return partition.error or "where it ends is not answered"
    if end < begin:
        return f"it ended at {begin} and ends at {end} now: it was truncated, or made again"
    if end == begin:
        return end
    rest = msgspec.structs.replace(
        partition, log_start_offset=max(begin, partition.log_start_offset)
    )
    with LogWriter(folder, log.topic, log.partition) as writer:
        reading = reader.read(log.topic, rest, writer)
    return reading.failure or reading.end or end


def _add_read(rows: AnswerRows, place: tuple[str, int], end: int | None, error: str | None) -> None:
    topic, partition = place
    value = None if end is None else str(end)
    rows.add(READ, None, "end_offset", value, at=(None, topic, partition), error=error)


@contextmanager
def _decoded(folder: str) -> Iterator[Iterator[tuple[str, pa.Table]]]:
    """Hand over the records of a log directory, by table."""
    with tempfile.TemporaryDirectory(prefix="groupscope-") as staging:
        options = PlanOptions()
        planned = plan(recognize([folder]), options, known_leaders)
        decoding = decode_dump(None, planned, (), Settings(staging), options)
        yield (
            (each.table.rpartition("/")[2], pq.read_table(each.path))
            for each in decoding.parts
            if each.rows
        )


def _add_keys(rows: AnswerRows, table: str, records: pa.Table) -> None:
    """Add rows of what records are about, each once."""
    if table == "control_markers":
        for topic, partition in _distinct([records["topic"], records["partition"]]):
            rows.add(MARKER, None, MARKER, "ended", at=(None, topic, partition))
        return
    if "key" not in records.column_names:
        return
    keys = records["key"].combine_chunks()
    fields = {each.name for each in keys.type}
    group = next((name for name in _GROUP_KEYS if name in fields), None)
    if group is None:
        return
    names = pc.struct_field(keys, group)
    if not {"topic", "topic_id"} & fields or "partition" not in fields:
        for (name,) in _distinct([names]):
            rows.add(RECORD, name, OF_GROUP, "written")
        return
    numbers = pc.struct_field(keys, "partition")
    is_offset = "topic" in fields
    topics = pc.struct_field(keys, "topic" if is_offset else "topic_id")
    for name, topic, number in _distinct([names, topics, numbers]):
        if is_offset:
            rows.add(RECORD, name, OF_OFFSET, "written", at=(None, topic, number))
        else:
            rows.add(RECORD, name, OF_SHARE_PARTITION, str(topic), at=(None, None, number))


def _distinct(columns: list[Any]) -> Iterator[tuple[Any, ...]]:
    table = pa.table(columns, names=[str(each) for each in range(len(columns))])
    once = table.group_by(table.column_names).aggregate([])
    yield from zip(*(once[name].to_pylist() for name in table.column_names), strict=True)
