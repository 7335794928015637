"""A snapshot from its first question to its name: what a cluster says, its logs, then files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from analytics.dump.files.segments import SNAPSHOT
from analytics.errors import ClusterUnreachableError
from analytics.snapshot.cluster_connection import ClusterConnection, NotAnsweredError
from analytics.snapshot.cluster_description import (
    Topics,
    described_topics,
    listed_groups,
    log_edges,
    with_edges,
    with_later_ends,
)
from analytics.snapshot.cluster_settings import (
    brokers_with_configs,
    groups_with_configs,
    topics_with_configs,
)
from analytics.snapshot.log_extents import (
    FETCH_BYTES,
    PARALLEL,
    FetchBudget,
    Pace,
    ReadLog,
    WantedLog,
)
from analytics.snapshot.log_folder import (
    END_OFFSETS_FILE,
    EarlierSnapshot,
    staged_folder,
    sync,
    write_root_files,
    write_topic_id,
)
from analytics.snapshot.log_reading import LogReader
from analytics.version import VERSION
from schemas.names import COORDINATOR_TOPICS
from schemas.snapshot import (
    SNAPSHOT_VERSION,
    ListedGroup,
    Log,
    Partition,
    Snapshot,
    Topic,
    Unread,
)

_ABSENT: Final = "UNKNOWN_TOPIC_OR_PARTITION"

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class Limits:
    """What is asked of a snapshot's reading.

    Attributes:
        fetch_bytes: What one answer may have.
        bytes_a_second: At most, on average; null without a limit.
        most_bytes: Of all logs, but for the rests of last batches; null without a limit.
        parallel: How many logs are read at once.
    """

    fetch_bytes: int = FETCH_BYTES
    bytes_a_second: int | None = None
    most_bytes: int | None = None
    parallel: int = PARALLEL

    def reader(
        self,
        cluster: ClusterConnection,
        kind: Callable[[ClusterConnection, Pace], LogReader] = LogReader,
    ) -> LogReader:
        """Return what reads logs within these limits, which hold for all that it reads."""
        fetch_bytes = self.fetch_bytes
        if self.bytes_a_second is not None:
            # All answers that come at once are of a second.
            fetch_bytes = min(fetch_bytes, max(self.bytes_a_second // self.parallel, 1))
        budget = FetchBudget(self.bytes_a_second, self.most_bytes)
        return kind(cluster, Pace(cluster.seconds, fetch_bytes, budget, self.parallel))


def take_snapshot(
    cluster: ClusterConnection,
    out: Path,
    clock: Clock,
    note: Callable[[str], None],
    reader: LogReader | None = None,
    *,
    is_checked: bool = True,
    earlier: EarlierSnapshot | None = None,
) -> Snapshot:
    """Write a snapshot of a cluster; what could not be read of it is in its `unread`.

    Args:
        cluster: Reached already.
        out: The folder; nothing is there yet.
        clock: The time now, in UTC.
        note: Takes a line about each topic.
        reader: Of logs, within limits; null has none.
        is_checked: Ask for groups once their logs are read, so that both can be compared.
        earlier: A snapshot to go on from: only what is new since is fetched.

    Raises:
        ClusterUnreachableError: The cluster does not answer, or none of the internal topics exists
            or may be read: there would be nothing in the folder.
        InputNotRecognizedError: The earlier snapshot is of another cluster.
        OutputRefusedError: Something is there.
        WorkspaceError: It cannot be written.
    """
    with staged_folder(out) as folder:
        reader = reader or Limits().reader(cluster)
        reader.prepare(folder, None if earlier is None else earlier.folder)
        taken_at = clock()
        topics, unread = _described(cluster)
        if earlier is not None:
            earlier.check_cluster(topics.cluster_id)
        groups, unanswered = _described_groups(cluster)
        reading = _Reading(reader, folder, clock, earlier)
        logs = list(_read_logs(reading, topics, note))
        if not any(each.log_end_offset is not None and _is_any(each) for each in logs):
            raise ClusterUnreachableError(_nothing_read(cluster, logs, unread))
        described = with_later_ends(cluster, topics.by_name.values())
        finished_at = clock()
        if is_checked:
            # What it decodes with takes longer to load than all else here.
            from analytics.snapshot.looks import first_look  # noqa: PLC0415

            first_look(cluster, reader, logs, folder, clock)
        snapshot = Snapshot(
            snapshot_version=SNAPSHOT_VERSION,
            groupscope_version=VERSION,
            taken_at=_text(taken_at),
            finished_at=_text(finished_at),
            cluster_id=topics.cluster_id,
            controller_id=topics.controller_id,
            brokers=topics.brokers,
            topics=described,
            logs=logs,
            groups=groups,
            unread=[*unread, *_not_read(logs), *_without_offsets(topics), *unanswered],
            checked_at=_text(clock()) if is_checked else None,
            resumed_from=None if earlier is None else earlier.document.taken_at,
        )
        _write(folder, snapshot)
        sync(folder)
    return snapshot


def _is_any(log: Log) -> bool:
    return log.failure is None or log.bytes > 0


def _described(cluster: ClusterConnection) -> tuple[Topics, list[Unread]]:
    """Return all topics, with the edges of their logs, and settings; and what is not described."""
    try:
        # All topics leave out those that may not be described; asked for by name they are errors.
        internal = described_topics(cluster, COORDINATOR_TOPICS)
        topics = described_topics(cluster)
    except NotAnsweredError as error:
        raise ClusterUnreachableError(f"{cluster.bootstrap}: {error}") from error
    by_name = topics.by_name | internal.by_name
    edges = log_edges(cluster, by_name)
    with_offsets = {name: with_edges(by_name[name], edges) for name in sorted(by_name)}
    topics.by_name, of_topics = topics_with_configs(cluster, with_offsets)
    topics.brokers, of_brokers = brokers_with_configs(cluster, topics.brokers)
    errors = topics.errors | internal.errors
    refused = [
        Unread(what=name, reason=error)
        for name, error in sorted(errors.items())
        if error != _ABSENT and name not in by_name
    ]
    return topics, [*refused, *of_brokers, *of_topics]


def _described_groups(cluster: ClusterConnection) -> tuple[list[ListedGroup], list[Unread]]:
    """Return all groups with their settings, and what was not answered."""
    groups, unlisted = listed_groups(cluster)
    groups, undescribed = groups_with_configs(cluster, groups)
    return groups, [*unlisted, *undescribed]


@dataclass(frozen=True)
class _Reading:
    """What reads logs, where to, and what an earlier snapshot has of them."""

    reader: LogReader
    folder: Path
    clock: Clock
    earlier: EarlierSnapshot | None

    def log(self, topic: Topic, partition: Partition) -> WantedLog:
        """Return what is to be read of a partition."""
        earlier = self.earlier
        if earlier is None:
            return WantedLog(topic.topic, partition, _nothing)
        held = partial(earlier.held, topic, partition.partition)
        return WantedLog(topic.topic, partition, held)


def _nothing() -> None:
    """Return what is held of a log without an earlier snapshot."""


def _read_logs(reading: _Reading, topics: Topics, note: Callable[[str], None]) -> Iterable[Log]:
    internal = [topics.by_name[name] for name in COORDINATOR_TOPICS if name in topics.by_name]
    described = [(topic, each) for topic in internal for each in topic.partitions]
    logs = [reading.log(topic, each) for topic, each in described]
    with closing(reading.reader.read_all(logs, reading.folder, reading.clock)) as read:
        found = (
            _log(topic, each, so_far) for (topic, each), so_far in zip(described, read, strict=True)
        )
        for name, of_topic in groupby(found, attrgetter("topic")):
            done = list(of_topic)
            yield from done
            _note_topic(name, done, note)


def _note_topic(name: str, logs: list[Log], note: Callable[[str], None]) -> None:
    for each in logs:
        if each.why_whole is not None:
            note(f"{name}-{each.partition} was read whole again: {each.why_whole}")
    size = sum(each.bytes for each in logs)
    read = sum(each.failure is None for each in logs)
    of_so_many = "" if read == len(logs) else f"{read} of "
    note(f"{name}: {of_so_many}{len(logs)} partitions, {size:,} bytes of batches")


def _log(topic: Topic, partition: Partition, read: ReadLog) -> Log:
    reading = read.reading
    span = reading.span
    epoch = partition.leader_epoch if span is None or span.epoch < 0 else span.epoch
    return Log(
        topic=topic.topic,
        partition=partition.partition,
        leader=partition.leader if span is None else span.leader,
        leader_epoch=epoch,
        log_start_offset=partition.log_start_offset if span is None else span.start,
        log_end_offset=partition.log_end_offset if span is None else reading.end,
        has_gaps=reading.has_gaps,
        next_offset=reading.next_offset,
        bytes=reading.size,
        readings=reading.readings,
        read_until=_text(read.read_at) if reading.failure is None else None,
        failure=reading.failure,
        last_batch_offset=None if reading.last_batch is None else reading.last_batch.offset,
        last_batch_bytes=None if reading.last_batch is None else reading.last_batch.size,
        fetched_from=reading.fetched_from,
        why_whole=reading.why_whole,
    )


def _not_read(logs: Iterable[Log]) -> list[Unread]:
    """Return what failed; where all of a topic fails for one reason, the topic."""
    found: list[Unread] = []
    for topic in COORDINATOR_TOPICS:
        of_topic = [each for each in logs if each.topic == topic]
        failures = {each.failure for each in of_topic}
        if len(failures) == 1 and len(of_topic) > 1 and (why := next(iter(failures))) is not None:
            found.append(Unread(what=topic, reason=why))
            continue
        found += [
            Unread(what=f"{topic}-{each.partition}", reason=each.failure)
            for each in of_topic
            if each.failure is not None
        ]
    return found


def _without_offsets(topics: Topics) -> list[Unread]:
    """Return partitions of other topics of which start or end are not known."""
    return [
        Unread(what=f"offsets of {topic.topic}-{each.partition}", reason=each.error or "no answer")
        for topic in topics.by_name.values()
        if topic.topic not in COORDINATOR_TOPICS
        for each in topic.partitions
        if each.log_start_offset is None or each.log_end_offset is None
    ]


def _nothing_read(cluster: ClusterConnection, logs: list[Log], unread: list[Unread]) -> str:
    reasons = [f"{each.what}: {each.reason}" for each in [*unread, *_not_read(logs)]]
    why = "; ".join(reasons) or "the cluster has none of them"
    return f"{cluster.bootstrap}: nothing of {', '.join(COORDINATOR_TOPICS)} can be read: {why}"


def _write(folder: Path, snapshot: Snapshot) -> None:
    logs = {(each.topic, each.partition): each for each in snapshot.logs}
    starts = {key: log.log_start_offset for key, log in logs.items()}
    ends = {key: log.log_end_offset for key, log in logs.items()}
    write_root_files(folder, snapshot.cluster_id, _without_nulls(starts), _without_nulls(ends))
    for topic in snapshot.topics:
        if topic.topic in COORDINATOR_TOPICS and topic.topic_id is not None:
            partitions = [(topic.topic, each.partition) for each in topic.partitions]
            write_topic_id(folder, partitions, topic.topic_id)
    _write_end_offsets(folder / END_OFFSETS_FILE, snapshot)
    content = msgspec.json.format(msgspec.json.encode(snapshot), indent=1)
    (folder / SNAPSHOT).write_bytes(content + b"\n")


def _without_nulls(offsets: Mapping[tuple[str, int], int | None]) -> dict[tuple[str, int], int]:
    return {key: offset for key, offset in offsets.items() if offset is not None}


def _write_end_offsets(path: Path, snapshot: Snapshot) -> None:
    """Write the file that `--end-offsets` takes (`analytics.replayed.end_offsets`).

    Of all but the internal topics it has the later end: no offset that was committed while logs
    were read is beyond it.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("topic", "partition", "log_start_offset", "log_end_offset"))
        for topic in snapshot.topics:
            for each in topic.partitions:
                end = each.log_end_offset
                if topic.topic not in COORDINATOR_TOPICS and each.later_end_offset is not None:
                    end = each.later_end_offset
                if end is not None:
                    start = "" if each.log_start_offset is None else each.log_start_offset
                    rows.writerow((topic.topic, each.partition, start, end))


def _text(time_of: datetime) -> str:
    return time_of.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
