"""Looks at a cluster's groups once its logs are read, to hold a snapshot against the living.

The first look asks for all groups, the second for those that differ; after each the logs are read
on, so that what was written in between is known.

What was written behind the ends of a snapshot's logs while its cluster was asked.

A group's state may differ from the snapshot's because its coordinator wrote since. So the logs are
read on from where they ended, up to where they end once all has been answered, and their keys are
noted as rows of `cluster_answers`: whose records there are. No such record is part of the dump.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.decode.decoding import decode_dump
from analytics.decode.elections import known_leaders
from analytics.decode.tasks import Settings
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.files.cluster_answers import ANSWER_FILES, answers_in_file
from analytics.dump.files.inputs import recognize
from analytics.errors import WorkspaceError
from analytics.snapshot.cluster_connection import ClusterConnection, NotAnsweredError
from analytics.snapshot.cluster_description import (
    described_topics,
    listed_groups,
    log_edges,
    with_edges,
)
from analytics.snapshot.group_answers import (
    ANSWERED,
    LISTED,
    AskedGroup,
    answer_writer,
    asked_groups,
    write_group_answers,
)
from analytics.snapshot.log_folder import LogWriter, write_root_files
from analytics.snapshot.log_reading import LogReader
from schemas.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from schemas.snapshot import Log, Snapshot

if TYPE_CHECKING:
    from analytics.snapshot.group_answers import AnswerRows, AnswerWriter
    from schemas.snapshot import Log, Partition


Clock = Callable[[], datetime]
LOOK: Final = "look"
"""The kind of rows that say what a whole look lacks, or that it lacks nothing."""


def first_look(
    cluster: ClusterConnection, reader: LogReader, logs: Iterable[Log], folder: Path, clock: Clock
) -> None:
    """Ask for all groups there are, and write what is answered beside the logs."""
    groups, unlisted = listed_groups(cluster)
    with answer_writer(folder / ANSWER_FILES[0], clock, 1) as writer:
        rows = writer.rows()
        for each in unlisted:
            rows.add(LOOK, None, LISTED, None, error=f"{each.what}: {each.reason}")
        if not unlisted:
            # Where there is no group, and no log of any, this alone says that it was asked for.
            rows.add(LOOK, None, LISTED, ANSWERED)
        writer.write(rows)
        # A group that moves meanwhile may be listed twice.
        once = {each.group_id: each for each in asked_groups(groups)}
        write_group_answers(cluster, once.values(), writer)
        write_records_since(cluster, reader, logs, writer)


def second_look(
    cluster: ClusterConnection,
    reader: LogReader,
    snapshot: Snapshot,
    groups: Mapping[str, tuple[str, int | None]],
    out: Path,
    clock: Clock,
) -> None:
    """Ask again for some groups, and write what is answered into a snapshot that is whole.

    Args:
        cluster: Reached already.
        reader: Of logs.
        snapshot: Its document.
        groups: Type and partition of `__consumer_offsets` by name, null where that is not known.
        out: Where the snapshot is.
        clock: The time now.

    Raises:
        WorkspaceError: It cannot be written.
    """
    listed, _ = listed_groups(cluster)
    there = {each.group_id: each for each in asked_groups(listed) if each.group_id in groups}
    leaders = {
        each.partition: each.leader
        for topic in snapshot.topics
        if topic.topic == CONSUMER_OFFSETS
        for each in topic.partitions
    }
    path = out / ANSWER_FILES[1]
    unfinished = out / f".{ANSWER_FILES[1]}.unfinished"
    try:
        with answer_writer(unfinished, clock, 2) as writer:
            for name, (group_type, partition) in groups.items():
                leader = None if partition is None else leaders.get(partition)
                if name not in there and leader is not None:
                    there[name] = AskedGroup(name, group_type, leader, is_listed=False)
            write_group_answers(cluster, there.values(), writer)
            write_records_since(cluster, reader, snapshot.logs, writer)
        unfinished.rename(path)
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()


def with_second_look(answers: pl.DataFrame, out: Path) -> pl.DataFrame:
    """Return rows of `cluster_answers` with those of the second look at the same snapshot.

    Args:
        answers: Of the first look.
        out: The snapshot.
    """
    later = pl.DataFrame(pl.from_arrow(answers_in_file(str(out / ANSWER_FILES[1]), 2)))
    later = later.with_columns(pl.lit(answers["copy"].first(), pl.String).alias("copy"))
    return pl.concat([answers, later.select(answers.columns).cast(answers.schema)])


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
