"""One partition's log, read from its start to an end, batch by batch as its leader sends it.

All of it is read within one epoch of one leader: each fetch names the epoch, and a broker refuses
another one (KIP-320). Where the leader changes, or the log no longer holds what is to be read next
(retention, DeleteRecords, a truncation), the partition is read again from its start.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from analytics.snapshot.cluster_connection import (
    ClusterConnection,
    NotAnsweredError,
    error_name,
    is_passing,
)
from analytics.snapshot.cluster_description import (
    described_topics,
    log_edges,
    with_edges,
)
from analytics.snapshot.fetched_batches import (
    LARGEST_BATCH,
    ForeignBatchesError,
    fetched_batches,
)
from analytics.snapshot.log_extents import (
    HeldLog,
    LastBatch,
    Pace,
    Patience,
    Reading,
    ReadLog,
    Span,
    SpentError,
    WantedLog,
    span_of,
)
from analytics.snapshot.log_folder import LogWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from analytics.snapshot.fetched_batches import FetchedBatches
    from schemas.snapshot import Partition


_READINGS: Final = 5
"""How often a log is read from its start before it is given up."""
_STRETCHES: Final = 10
"""How often reading goes on behind an end."""
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


class _NotHeldError(Exception):
    """What is held of a log is not how it begins now; says why."""


class LogReader:
    """Reads partitions into a folder; several threads may, each another one."""

    def __init__(self, cluster: ClusterConnection, pace: Pace) -> None:
        self._cluster = cluster
        self._pace = pace
        self._silent: dict[int, str] = {}
        """Leaders that were waited for in vain: their other partitions are not waited for again."""

    @property
    def parallel(self) -> int:
        """How many logs are to be read at once."""
        return self._pace.parallel

    def prepare(self, folder: Path, earlier: Path | None) -> None:
        """Check, before any work, that logs can be read into a folder, which threads always can.

        Args:
            folder: What logs will be read into.
            earlier: The earlier snapshot that is gone on from; null for none.
        """

    def read_all(
        self, logs: Iterable[WantedLog], folder: Path, clock: Callable[[], datetime]
    ) -> Generator[ReadLog]:
        """Read logs, several at once; they come in the order of `logs`.

        Args:
            logs: Which.
            folder: Each gets a folder of its own in it.
            clock: The time now, in UTC.
        """
        with self._threads() as threads:
            begun = [threads.submit(self.read_into, folder, each, clock) for each in logs]
            for each in begun:
                yield each.result()

    def read_into(self, folder: Path, log: WantedLog, clock: Callable[[], datetime]) -> ReadLog:
        """Read one log into a folder of its own."""
        topic, partition, held = log.topic, log.partition, log.held()
        with LogWriter(folder, topic, partition.partition) as writer:
            if isinstance(held, str):
                reading = replace(self.read(topic, partition, writer), why_whole=held)
            else:
                reading = self.read(topic, partition, writer, held)
        return ReadLog(reading, clock())

    @contextmanager
    def _threads(self) -> Iterator[ThreadPoolExecutor]:
        """Hand over threads to read logs in; an error or an interruption stops them all."""
        pool = ThreadPoolExecutor(self._pace.parallel, thread_name_prefix="groupscope-log")
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._pace.budget.stop()
            self._cluster.abandon()
            raise
        finally:
            pool.shutdown()

    def read(
        self, topic: str, partition: Partition, writer: LogWriter, held: HeldLog | None = None
    ) -> Reading:
        """Read one partition; what was written of it stays, also where its end is not reached.

        Args:
            topic: Whose.
            partition: As it was described.
            writer: Of its segments.
            held: What an earlier snapshot has: where the log still begins so, only what is behind
                is read.
        """
        span = span_of(topic, partition)
        why_whole = None
        if held is not None and isinstance(span, Span):
            try:
                return self._read_on(span, held, writer)
            except _NotHeldError as error:
                why_whole = str(error)
            except _LogChangedError as error:
                why_whole = f"it changed while it was read on ({error})"
            writer.clear()
        return replace(self._read_whole(topic, partition, span, writer), why_whole=why_whole)

    def _read_on(self, span: Span, held: HeldLog, writer: LogWriter) -> Reading:
        """Read what is behind what is held.

        Below its end a log changes by the cleaner, by deletion and by truncation. Where the last
        batch that is held is still the log's, none was cut off below it: brokers have the same
        records up to a batch of the same offset and epoch (KIP-101). What the cleaner removed below
        stays in the dump; what it removed behind may have been a tombstone of what is held, and so
        no record may be missing there.

        Raises:
            _NotHeldError: The log begins otherwise now.
            _LogChangedError: Its leader changed.
        """
        if span.start != held.start:
            raise _NotHeldError(f"it began at {held.start} and begins at {span.start} now")
        if span.end < held.next_offset:
            raise _NotHeldError(f"it went on to {held.next_offset} and ends at {span.end} now")
        position = _Position(held.last.offset, span.end, last=held.last)
        failure = None
        try:
            self._check_held(span, held, position)
            position.offset = held.next_offset
            writer.keep(held.segments)
            if self._read_stretch(span, writer, position):
                raise _NotHeldError("the cleaner removed records behind what was held")
            writer.end(span.start, position.end, position.offset)
        except _NotReadError as error:
            failure = str(error)
        return Reading(
            span,
            position.end,
            max(position.offset, held.next_offset) if writer.size else None,
            1,
            size=writer.size,
            has_gaps=held.has_gaps,
            failure=failure,
            last_batch=position.last if writer.size else None,
            fetched_from=held.next_offset if writer.size else None,
        )

    def _check_held(self, span: Span, held: HeldLog, position: _Position) -> None:
        """Check that the last batch that is held is still there, byte for byte."""
        records = self._fetched(span, position, max(held.last.size, 1))
        if records is None or records[: held.last.size] != held.content:
            raise _NotHeldError(f"its batch at offset {held.last.offset} is another one now")

    def _read_whole(
        self, topic: str, partition: Partition, span: Span | str, writer: LogWriter
    ) -> Reading:
        for readings in range(1, _READINGS + 1):
            if isinstance(span, str):
                break
            position = _Position(span.start, span.end)
            reading = self._reading(span, writer, position, readings)
            if not position.has_changed or readings == _READINGS:
                return reading
            time.sleep(_BETWEEN * readings)
            span = self._span_now(topic, partition)
            writer.clear()
        assert isinstance(span, str)
        return Reading(None, None, None, readings, failure=span)

    def _reading(
        self, span: Span, writer: LogWriter, position: _Position, readings: int
    ) -> Reading:
        failure = None
        try:
            self._read_span(span, writer, position)
        except _NotReadError as error:
            failure = str(error)
        except _LogChangedError as error:
            position.has_changed = True
            failure = f"it changed {readings} times while it was read ({error})"
        return Reading(
            span,
            position.end,
            position.offset,
            readings,
            size=writer.size,
            has_gaps=position.has_gaps,
            failure=failure,
            last_batch=position.last,
        )

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
        """Read to the end, and on where records are missing.

        The cleaner removes a record for a newer one of its key. One that was removed before it was
        read may have gone for one behind the end: whatever that is lies below the end of the log
        now, and is there unless it was removed, too. So reading ends behind a stretch that lacks
        nothing, or where the log has not grown.
        """
        for _ in range(_STRETCHES):
            has_gaps = self._read_stretch(span, writer, position)
            is_first = position.end == span.end
            if not has_gaps and (not is_first or not position.has_gaps):
                break
            end = self._end_now(span)
            if end <= position.end:
                break
            position.end = end
        else:
            raise _NotReadError("the cleaner removed what had just been written, time and again")
        writer.end(span.start, position.end, position.offset)
        position.offset = max(position.offset, position.end)

    def _read_stretch(self, span: Span, writer: LogWriter, position: _Position) -> bool:
        """Read to the end; return whether records are missing up to it."""
        size, has_gaps = self._pace.fetch_bytes, False
        while position.offset < position.end:
            records = self._fetched(span, position, size)
            if records is None:
                # No record is left up to the end: the cleaner removed them all.
                has_gaps = True
                break
            try:
                batches = fetched_batches(records, position.offset, position.end)
            except ForeignBatchesError as error:
                why = f"broker {span.leader} sent no batches of it: {error}"
                raise _NotReadError(why) from error
            if batches.needed:
                # Brokers send the first batch whole (KIP-74); one that does not is asked for more.
                size = _larger(size, batches.needed, position.offset)
                continue
            if batches.last_offset is None:
                has_gaps = True
                break
            has_gaps |= batches.has_gaps
            self._keep(batches, records, writer, position)
            size = self._pace.fetch_bytes
        position.has_gaps |= has_gaps
        return has_gaps

    def _end_now(self, span: Span) -> int:
        described, _ = self._described_span(span.topic, span.partition)
        if isinstance(described, str):
            raise _NotReadError(described)
        if (described.leader, described.epoch) != (span.leader, span.epoch):
            raise _LogChangedError(f"broker {span.leader} no longer leads it")
        return described.end

    def _keep(
        self, batches: FetchedBatches, records: bytes, writer: LogWriter, position: _Position
    ) -> None:
        assert batches.first_offset is not None
        assert batches.last_offset is not None
        base = min(position.offset, batches.first_offset)
        writer.append(memoryview(records)[: batches.size], base, batches.last_offset)
        position.offset = batches.last_offset + 1
        position.last = LastBatch(batches.last_offset, batches.last_size)

    def _fetched(self, span: Span, position: _Position, size: int) -> bytes | None:
        """Return the bytes from an offset on; null where the log has none up to its end.

        Raises:
            _LogChangedError: The leader or the log's start has changed.
            _NotReadError: It is refused, or nothing comes in time.
        """
        if span.leader in self._silent:
            # Another broker may lead this partition by now.
            self._check_leader(span)
            raise _NotReadError(self._silent[span.leader])
        patience = self._pace.patience()
        while True:
            try:
                answer = self._answer_within_budget(span, position.offset, size, patience)
            except SpentError as error:
                raise _NotReadError(str(error)) from error
            except NotAnsweredError as error:
                why = str(error)
                if not error.is_passing or patience.ends_within(_BETWEEN):
                    self._silent[span.leader] = why
                    raise _NotReadError(why) from error
                with patience.waiting():
                    self._check_leader(span)
            else:
                if answer is not None and answer.records and not answer.error_code:
                    return bytes(answer.records)
                why_later = _why_without_records(answer, position.end)
                if why_later is None:
                    return None
                if patience.ends_within(_BETWEEN):
                    raise _NotReadError(why_later)
            with patience.waiting():
                time.sleep(_BETWEEN)

    def _answer_within_budget(self, span: Span, offset: int, size: int, patience: Patience) -> Any:  # noqa: ANN401 - untyped library
        """Ask for as many bytes as are left, the first batch of which comes whole; keep the pace.

        What is waited for here, others' answers and the pace, is not the broker's time.

        Raises:
            SpentError: None are left.
        """
        with self._pace.budget.share(size) as share:
            with patience.waiting():
                answer = self._partition_answer(span, offset, share.size)
            if answer is not None and answer.records:
                share.answer_bytes = len(answer.records)
        self._pace.budget.keep_pace()
        return answer

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


def _why_without_records(answer: Any, end: int) -> str | None:  # noqa: ANN401 - untyped library
    """Return why records may come later; None where the log has none up to the end.

    Raises:
        _LogChangedError: It is another log now.
        _NotReadError: None will come.
    """
    if answer is None:
        return "the broker answers without it, as it does where a quota is exceeded"
    if answer.error_code in _CHANGED:
        raise _LogChangedError(error_name(answer.error_code))
    if answer.error_code and not is_passing(answer.error_code):
        raise _NotReadError(error_name(answer.error_code))
    if answer.error_code:
        return error_name(answer.error_code)
    if answer.high_watermark < end:
        return f"the high watermark is {answer.high_watermark}, not {end} yet"
    return None


def _larger(size: int, needed: int, offset: int) -> int:
    """Return how many bytes to ask for next of a batch that did not come whole."""
    if size >= LARGEST_BATCH:
        raise _NotReadError(f"the batch at offset {offset} does not come whole")
    return min(max(needed, 2 * size), LARGEST_BATCH)


@dataclass
class _Position:
    offset: int
    end: int
    has_gaps: bool = False
    has_changed: bool = False
    last: LastBatch | None = None
