"""One partition's log, read from its start to an end, batch by batch as its leader sends it.

All of it is read within one epoch of one leader: each fetch names the epoch, and a broker refuses
another one (KIP-320). Where the leader changes, or the log no longer holds what is to be read next
(retention, DeleteRecords, a truncation), the partition is read again from its start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from analytics.snapshot.cluster_connection import (
    ClusterConnection,
    NotAnsweredError,
    error_name,
    is_passing,
)
from analytics.snapshot.cluster_description import (
    NO_LEADER,
    described_topics,
    log_edges,
    with_edges,
)
from analytics.snapshot.fetched_batches import (
    LARGEST_BATCH,
    ForeignBatchesError,
    fetched_batches,
)
from analytics.snapshot.log_folder import LogWriter

if TYPE_CHECKING:
    from analytics.snapshot.fetched_batches import FetchedBatches
    from schemas.snapshot import Partition

FETCH_BYTES: Final = 4 << 20
"""Of one answer; a batch that is larger comes whole (KIP-74)."""

_READINGS: Final = 5
"""How often a log is read from its start before it is given up."""
_WAIT_MS: Final = 500
_BETWEEN: Final = 0.2
_OFFSET_OUT_OF_RANGE: Final = 1
_FENCED_LEADER_EPOCH: Final = 74
_NOT_LEADER: Final = 6
_UNKNOWN_LEADER_EPOCH: Final = 75
_CHANGED: Final = (_OFFSET_OUT_OF_RANGE, _FENCED_LEADER_EPOCH, _NOT_LEADER, _UNKNOWN_LEADER_EPOCH)
_NEWEST_BY_NAME: Final = 10
"""Of Fetch: the last version that neither sends clients to another replica nor needs topic ids."""
_OLDEST_UNCONVERTED: Final = 4
"""From it on brokers send batches of magic 2 as they are."""


class _LogChangedError(Exception):
    """The log is not the one any more whose reading began."""


class _NotReadError(Exception):
    """The log cannot be read to its end."""


@dataclass(frozen=True)
class Span:
    """What is to be read.

    Attributes:
        topic: Whose.
        partition: Its number.
        leader: Node id.
        epoch: Of that leader; -1 where brokers know none.
        start: First offset.
        end: The offset after the last.
    """

    topic: str
    partition: int
    leader: int
    epoch: int
    start: int
    end: int


@dataclass(frozen=True)
class Reading:
    """How far a log was read.

    Attributes:
        span: What was to be read; null where nobody could say.
        next_offset: Where reading would go on.
        size: Bytes written.
        readings: How often it was begun.
        failure: Why the end was not reached; null where it was.
    """

    span: Span | None
    next_offset: int | None
    size: int
    readings: int
    failure: str | None


@dataclass(frozen=True)
class Pace:
    """How fast, and how long.

    Attributes:
        fetch_bytes: What one answer may have.
        seconds: How long nothing may come before a log is given up.
        wait: Called with the bytes of each answer: waits as long as a rate asks for.
    """

    seconds: float
    fetch_bytes: int = FETCH_BYTES
    wait: Callable[[int], None] = lambda _: None


def span_of(topic: str, partition: Partition) -> Span | str:
    """Return what is to be read of a partition, or why that is not known."""
    start, end = partition.log_start_offset, partition.log_end_offset
    if partition.leader is None or start is None or end is None:
        return partition.error or NO_LEADER
    epoch = -1 if partition.leader_epoch is None else partition.leader_epoch
    return Span(topic, partition.partition, partition.leader, epoch, start, max(start, end))


class LogReader:
    """Reads partitions into a folder."""

    def __init__(self, cluster: ClusterConnection, pace: Pace) -> None:
        self._cluster = cluster
        self._pace = pace
        self._silent: dict[int, str] = {}
        """Leaders that were waited for in vain: their other partitions are not waited for again."""

    def read(self, topic: str, partition: Partition, writer: LogWriter) -> Reading:
        """Read one partition; what was written of it stays, also where its end is not reached."""
        span = span_of(topic, partition)
        readings = 0
        position = _Position(0)
        while True:
            readings += 1
            try:
                if isinstance(span, str):
                    raise _NotReadError(span)
                position = _Position(span.start)
                self._read_span(span, writer, position)
            except _NotReadError as error:
                known = None if isinstance(span, str) else span
                next_offset = None if known is None else position.offset
                return Reading(known, next_offset, writer.size, readings, str(error))
            except _LogChangedError as error:
                if readings == _READINGS:
                    why = f"it changed {readings} times while it was read ({error})"
                    return Reading(span, position.offset, writer.size, readings, why)
                time.sleep(_BETWEEN * readings)
                span = self._span_now(topic, partition)
                writer.clear()
            else:
                return Reading(span, position.offset, writer.size, readings, None)

    def _span_now(self, topic: str, partition: Partition) -> Span | str:
        """Return what is to be read of a log that has changed, once it has a leader again."""
        until = time.monotonic() + self._pace.seconds
        while True:
            span, is_passing_by = self._described_span(topic, partition.partition)
            if isinstance(span, Span) or not is_passing_by or time.monotonic() + _BETWEEN > until:
                return span
            time.sleep(_BETWEEN)

    def _described_span(self, topic: str, number: int) -> tuple[Span | str, bool]:
        """Return what is to be read, or why that is not known, and whether it may be later."""
        try:
            topics = described_topics(self._cluster, [topic])
        except NotAnsweredError as error:
            return str(error), error.is_passing
        described = topics.by_name.get(topic)
        if described is None:
            return topics.errors.get(topic, "the topic is gone"), False
        edges = log_edges(self._cluster, {topic: described})
        for each in with_edges(described, edges).partitions:
            if each.partition == number:
                return span_of(topic, each), True
        return "the partition is gone", False

    def _read_span(self, span: Span, writer: LogWriter, position: _Position) -> None:
        size = self._pace.fetch_bytes
        while position.offset < span.end:
            records = self._fetched(span, position, size)
            if records is None:
                # No record is left up to the end: the cleaner removed them all.
                break
            try:
                batches = fetched_batches(records, position.offset, span.end)
            except ForeignBatchesError as error:
                raise _NotReadError(
                    f"broker {span.leader} sent no batches of it: {error}"
                ) from error
            if batches.last_offset is None and not batches.needed:
                break
            if batches.needed:
                # Brokers send the first batch whole (KIP-74); one that does not is asked for more.
                size = _larger(size, batches.needed, position.offset)
            else:
                self._keep(batches, records, writer, position)
                size = self._pace.fetch_bytes
        writer.end(span.start, span.end, position.offset)
        position.offset = max(position.offset, span.end)

    def _keep(
        self, batches: FetchedBatches, records: bytes, writer: LogWriter, position: _Position
    ) -> None:
        assert batches.first_offset is not None
        assert batches.last_offset is not None
        base = min(position.offset, batches.first_offset)
        writer.append(memoryview(records)[: batches.size], base, batches.last_offset)
        position.offset = batches.last_offset + 1

    def _fetched(self, span: Span, position: _Position, size: int) -> bytes | None:
        """Return the bytes from an offset on; null where the log has none up to its end.

        Raises:
            _LogChangedError: The leader or the log's start has changed.
            _NotReadError: It is refused, or nothing comes in time.
        """
        if span.leader in self._silent:
            raise _NotReadError(self._silent[span.leader])
        until = time.monotonic() + self._pace.seconds
        while True:
            is_silent = False
            try:
                answer = self._partition_answer(span, position.offset, size)
            except NotAnsweredError as error:
                why, is_over, is_silent = str(error), not error.is_passing, True
                self._check_leader(span)
            else:
                if answer is None:
                    why, is_over = "the broker answers without it, which throttling does", False
                elif answer.error_code:
                    why, is_over = self._refused(answer.error_code)
                elif answer.records:
                    self._pace.wait(len(answer.records))
                    return bytes(answer.records)
                elif answer.high_watermark >= span.end:
                    return None
                else:
                    why = f"the high watermark is {answer.high_watermark}, not {span.end} yet"
                    is_over = False
            if is_over or time.monotonic() + _BETWEEN > until:
                if is_silent:
                    self._silent[span.leader] = why
                raise _NotReadError(why)
            time.sleep(_BETWEEN)

    def _check_leader(self, span: Span) -> None:
        """Check that the leader still is the one that is asked, as far as any broker tells.

        Raises:
            _LogChangedError: It is not.
        """
        try:
            topics = described_topics(self._cluster, [span.topic])
        except NotAnsweredError:
            return
        described = topics.by_name.get(span.topic)
        for each in described.partitions if described is not None else ():
            if each.partition == span.partition and each.leader not in (None, span.leader):
                raise _LogChangedError(f"broker {span.leader} no longer leads it")

    def _refused(self, code: int) -> tuple[str, bool]:
        if code in _CHANGED:
            raise _LogChangedError(error_name(code))
        return error_name(code), not is_passing(code)

    def _partition_answer(self, span: Span, offset: int, size: int) -> Any:  # noqa: ANN401
        """Return what a fetch answers of the partition; null where it says nothing of it."""
        from kafka.protocol.consumer import FetchRequest  # noqa: PLC0415 - optional

        of_topic = FetchRequest.FetchTopic
        partition = of_topic.FetchPartition(
            partition=span.partition,
            current_leader_epoch=span.epoch,
            fetch_offset=offset,
            partition_max_bytes=size,
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=size,
            isolation_level=0,
            topics=[of_topic(topic=span.topic, partitions=[partition])],
            min_version=_OLDEST_UNCONVERTED,
            max_version=_NEWEST_BY_NAME,
        )
        response = self._cluster.ask(request, span.leader)
        if response.error_code:
            raise NotAnsweredError(
                error_name(response.error_code), is_passing=is_passing(response.error_code)
            )
        for topic in response.responses:
            for each in topic.partitions:
                if (topic.topic, each.partition_index) == (span.topic, span.partition):
                    return each
        return None


def _larger(size: int, needed: int, offset: int) -> int:
    """Return how many bytes to ask for next of a batch that did not come whole."""
    if size >= LARGEST_BATCH:
        raise _NotReadError(f"the batch at offset {offset} does not come whole")
    return min(max(needed, 2 * size), LARGEST_BATCH)


@dataclass
class _Position:
    offset: int
