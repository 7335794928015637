"""A whole dump looked at through its headers: copies, lines of history, clocks of leaders."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.dump.batches.segment_stats import EpochTimes, SegmentStats, SegmentSurvey
from analytics.dump.batches.stretches import BACK_MS, FORWARD_MS
from analytics.dump.batches.walks import CopyLog, SegmentWalk, log_senses, walk_copy, walk_segment
from analytics.dump.copies.leadership import NO_LEADERS, NOBODY, Leaders, Leadership, MadeAt
from analytics.dump.copies.plan import PlanOptions, partitions_by_key
from analytics.dump.copies.surviving_lines import find_lines, with_witnessed_epochs
from analytics.dump.files.model import (
    NOTHING_KNOWN,
    Copy,
    Divergence,
    Note,
    PartitionCopy,
    SegmentFile,
)
from analytics.dump.files.storage import storage_of
from analytics.dump.inspection.survey import PartitionSurvey, survey_of
from analytics.dump.records.segment_reader import (
    SAMPLE_BYTES,
    Sample,
    nothing_sampled,
    sample_segment,
)
from analytics.epoch_times import iso_time
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from analytics.dump.batches.log_bounds import LogSense
    from schemas.manifest import LeaderClockEntry, LedEntry, Manifest, PartitionEntry

# Brokers whose clocks differ from the controller's, as the epochs in which they led show it.
#
# A coordinator stamps its records with its broker's clock, a follower copies them as they are.
# The metadata log has, by the controller's clock, when each leader was elected, and when the next
# one: in between lie all its records that survive in a log in which the next one wrote. A record
# that says less was written by a clock that is behind, one that says more by one that is ahead,
# by as much at least. What a clock said within those bounds nothing can contradict: so a broker
# that led to the end is held against the metadata log on its own disk, which controllers write to
# all the time; where that ends long before, its clock is ahead or no controller could be reached.
#
# Copies are no evidence of clocks: all have the bytes of the leader. Without a metadata log
# nothing tells whose clock was wrong where times go back.

_MINUTE: Final = 60_000
_COPIED_MS: Final = 15 * _MINUTE
"""The directories of a disk are copied within less."""


@dataclass(frozen=True)
class ClockDifference:
    """A record whose leader's clock cannot have been the controller's.

    Attributes:
        node_id: The broker that led.
        ahead_ms: By how much its clock was ahead at least; negative: behind.
        why: The evidence, in words.
        is_sure: Nothing else explains it.
    """

    node_id: int
    ahead_ms: int
    why: str
    is_sure: bool = True

    @property
    def what(self) -> str:
        """A sentence about it."""
        minutes, way = abs(self.ahead_ms) // _MINUTE, "ahead of" if self.ahead_ms > 0 else "behind"
        said = (
            f"the clock of broker {self.node_id} was {minutes} min or more {way} the controller's"
        )
        other = "" if self.is_sure else ", or it had reached no controller for so long"
        return f"{said}{other}: {self.why}"


def with_leader_clocks(manifest: Manifest, leaders: Leaders) -> Manifest:
    """Return a manifest with `leader_clocks`: a row a broker whose clock differed.

    Each has `node_id`, `ahead_ms` (negative: behind), `is_sure`, `what` (the sentence) and, where
    it is sure, `led`: `topic`, `partition`, `leader_epoch`, `from_ms` and `to_ms` (epoch
    milliseconds by the controller's clock, null where not known) of all epochs of the broker.
    Clocks that differ by less than a minute, or by more than a day (times that are not believed),
    are not named.

    Args:
        manifest: Of a dump, its partitions with `epoch_times`.
        leaders: What its metadata log knows.
    """
    found: dict[tuple[int, bool], ClockDifference] = {}
    for row in manifest["partitions"]:
        if row.get("is_leading") and row["topic"] != CLUSTER_METADATA:
            for each in _differences(row, leaders):
                key = each.node_id, each.ahead_ms > 0
                held = found.get(key)
                if held is None or _rank(each) > _rank(held):
                    found[key] = each
    clocks: list[LeaderClockEntry] = [
        {
            "node_id": each.node_id,
            "ahead_ms": each.ahead_ms,
            "is_sure": each.is_sure,
            "what": each.what,
            "led": list(_led(each, leaders)) if each.is_sure else [],
        }
        for _, each in sorted(found.items())
    ]
    return {**manifest, "leader_clocks": clocks}


def _led(clock: ClockDifference, leaders: Leaders) -> Iterator[LedEntry]:
    """Yield the epochs in which the broker led, and from when to when that was."""
    for (topic, partition), registered in sorted(leaders.registered.items()):
        if topic == CLUSTER_METADATA:
            continue
        for own in registered.led:
            if own.leader == clock.node_id:
                after = _next(registered.led, own)
                yield {
                    "topic": topic,
                    "partition": partition,
                    "leader_epoch": own.epoch,
                    "from_ms": own.since,
                    "to_ms": None if after is None else after.since,
                }


def _rank(each: ClockDifference) -> tuple[bool, int]:
    return each.is_sure, abs(each.ahead_ms)


def _differences(row: PartitionEntry, leaders: Leaders) -> Iterator[ClockDifference]:
    key = row["topic"], row["partition"]
    times = [EpochTimes(*each) for each in row.get("epoch_times") or ()]
    if key not in leaders.registered or not times:
        return
    led = leaders.registered[key].led
    place, latest = f"{key[0]}-{key[1]}", times[-1].epoch
    for each in times:
        own = next((one for one in led if one.epoch == each.epoch), None)
        if own is None or own.leader == NOBODY:
            continue
        if own.since is not None and _is_apart(own.since - each.least_ms):
            why = (
                f"{place} has a record of {iso_time(each.least_ms)} of leader epoch {own.epoch}, "
                f"which began at {iso_time(own.since)}"
            )
            yield ClockDifference(own.leader, each.least_ms - own.since, why)
        after = _next(led, own)
        if after is not None and after.epoch <= latest and after.since is not None:
            if _is_apart(each.most_ms - after.since):
                why = (
                    f"{place} has a record of {iso_time(each.most_ms)} of leader epoch "
                    f"{own.epoch}, and broker {after.leader} led from {iso_time(after.since)} on"
                )
                yield ClockDifference(own.leader, each.most_ms - after.since, why)
        elif each.epoch == latest:
            made_at = leaders.made_at.get(row["copy"] or "", MadeAt(None))
            heard = made_at.last_time if made_at.metadata_end is not None else None
            is_own = made_at.node_id == own.leader
            if is_own and heard is not None and _COPIED_MS < each.most_ms - heard < FORWARD_MS:
                why = (
                    f"{place} has a record of {iso_time(each.most_ms)}, and the metadata log on "
                    f"the same disk ends at {iso_time(heard)}"
                )
                yield ClockDifference(own.leader, each.most_ms - heard, why, is_sure=False)


def _next(led: Sequence[Leadership], own: Leadership) -> Leadership | None:
    """Return the next leadership of another broker."""
    others = (NOBODY, own.leader)
    return next(
        (each for each in led if each.epoch > own.epoch and each.leader not in others), None
    )


def _is_apart(difference_ms: int) -> bool:
    return BACK_MS < difference_ms < FORWARD_MS


# A whole dump looked at through its headers: every copy surveyed, lines of history compared.
#
# Large dumps are shared out among processes; small ones are done at once, since a process costs
# more than they do. Brokers roll, clean and delete as they run: a dump that did not stand still
# while it was read is one that says so.

_FOR_PROCESSES = 256 << 20
"""Below so many bytes one process does it all."""
_TASKS_EACH = 4
_COMPARED_BYTES = 16 << 20
"""Of batches whose headers leave doubt, per pair of copies; `plan` compares more."""
_MOST_SAMPLED = 16
"""Files of one partition that are sampled."""


class FileTask(NamedTuple):
    """Some files of partitions that only one copy has."""

    files: tuple[tuple[PartitionCopy, SegmentFile, LogSense, bool], ...]
    check_crc: bool
    may_map: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(segment.size for _, segment, _, _ in self.files)


class GroupTask(NamedTuple):
    """All copies of one partition."""

    group: tuple[PartitionCopy, ...]
    prefer_copy: str | None
    node_ids: Mapping[str, int | None]
    check_crc: bool
    leaders: Leaders = NO_LEADERS
    may_map: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(each.size for each in self.group)


@dataclass
class InspectionFindings:
    """What tasks found.

    Attributes:
        files: By copy, one survey for each file.
        sample: Record types of the first records of files.
        leading: For a partition of several copies, the one whose line survived.
        divergences: Lines that did not.
        notes: What could not be compared or read.
    """

    files: list[tuple[str, SegmentSurvey]] = field(default_factory=list)
    sample: Sample = field(default_factory=nothing_sampled)
    leading: dict[tuple[str, int], str] = field(default_factory=dict)
    divergences: list[Divergence] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def add(self, other: InspectionFindings) -> None:
        """Take in what another task found."""
        self.files += other.files
        self.sample = self.sample.add(other.sample)
        self.leading |= other.leading
        self.divergences += other.divergences
        self.notes += other.notes


@dataclass(frozen=True)
class Study:
    """A dump, looked at.

    Attributes:
        surveys: One for each copy of each internal partition, in order of topics.
        findings: What else was found.
    """

    surveys: tuple[PartitionSurvey, ...]
    findings: InspectionFindings


def _silent(size: int) -> None:
    """Tell nobody."""


def study(
    copies: Sequence[Copy],
    options: PlanOptions,
    *,
    check_crc: bool = False,
    leaders: Leaders = NO_LEADERS,
    report: Callable[[int], object] = _silent,
) -> Study:
    """Look at every internal partition of every copy.

    Args:
        copies: As listed.
        options: What a person asked for.
        check_crc: Sum over every batch.
        leaders: What the metadata log knows of leaders.
        report: Is told how many bytes were just looked at.
    """
    groups = partitions_by_key(copies, options)
    tasks = _tasks(groups.values(), copies, options, leaders, check_crc=check_crc)
    seen = InspectionFindings()
    for task, found in zip(tasks, _results(tasks), strict=True):
        seen.add(found)
        report(task.size)
    order = {key: place for place, key in enumerate(groups)}
    seen.divergences.sort(key=lambda each: order[each.topic, each.partition])
    files: dict[str, list[SegmentSurvey]] = {}
    for copy, survey in seen.files:
        files.setdefault(copy, []).append(survey)
    surveys = tuple(
        survey_of(each, files.get(each.copy, []), listing_changed=has_changed(each))
        for group in groups.values()
        for each in group
    )
    return Study(surveys, seen)


def _tasks(
    groups: Iterable[Sequence[PartitionCopy]],
    copies: Iterable[Copy],
    options: PlanOptions,
    leaders: Leaders,
    *,
    check_crc: bool,
) -> list[FileTask | GroupTask]:
    """Return tasks, the largest first; single files of a partition may go to several."""
    node_ids = {copy.name: copy.node_id for copy in copies}
    tasks: list[FileTask | GroupTask] = []
    files: list[tuple[PartitionCopy, SegmentFile, LogSense, bool]] = []
    for group in groups:
        if len(group) > 1:
            tasks.append(GroupTask(tuple(group), options.prefer_copy, node_ids, check_crc, leaders))
        else:
            files += _files(group[0])
    total = sum(segment.size for _, segment, _, _ in files)
    share = total // (_TASKS_EACH * _processors()) + 1
    chosen: list[tuple[PartitionCopy, SegmentFile, LogSense, bool]] = []
    filled = 0
    for each in files:
        chosen.append(each)
        filled += each[1].size
        if filled >= share:
            tasks.append(FileTask(tuple(chosen), check_crc))
            chosen, filled = [], 0
    if chosen:
        tasks.append(FileTask(tuple(chosen), check_crc))
    return sorted(tasks, key=lambda task: -task.size)


def _files(
    partition: PartitionCopy,
) -> Iterator[tuple[PartitionCopy, SegmentFile, LogSense, bool]]:
    senses = [*log_senses(partition), *(NOTHING_KNOWN for _ in partition.checkpoints)]
    every = len(senses) // _MOST_SAMPLED + 1
    for number, (segment, sense) in enumerate(zip(partition.segments, senses, strict=True)):
        yield partition, segment, sense, number % every == 0


def _results(tasks: Sequence[FileTask | GroupTask]) -> Iterator[InspectionFindings]:
    processors = min(_processors(), len(tasks))
    if processors < 2 or sum(task.size for task in tasks) < _FOR_PROCESSES:
        yield from map(_do, tasks)
        return
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 - costs time

    done = 0
    try:
        mapping = [task._replace(may_map=True) for task in tasks]
        for found in _in_processes(mapping, processors):
            done += 1
            yield found
    except BrokenProcessPool:
        # A mapped file has shrunk under a process, which ends it: read the others instead.
        yield from map(_do, tasks[done:])


def _in_processes(
    tasks: Sequence[FileTask | GroupTask], processors: int
) -> Iterator[InspectionFindings]:
    import multiprocessing  # noqa: PLC0415 - costs time
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - likewise

    # Forking keeps what is imported; elsewhere than on Linux it is not safe.
    method = "fork" if sys.platform == "linux" else None
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(processors, mp_context=context) as pool:
        yield from pool.map(_do, tasks)


def _processors() -> int:
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _do(task: FileTask | GroupTask) -> InspectionFindings:
    return _do_files(task) if isinstance(task, FileTask) else _do_group(task)


def _do_files(task: FileTask) -> InspectionFindings:
    seen = InspectionFindings()
    for partition, segment, sense, sampled in task.files:
        walk = walk_segment(segment, sense, check_crc=task.check_crc, may_map=task.may_map)
        _note(seen, partition, walk, sampled=sampled)
    return seen


def _do_group(task: GroupTask) -> InspectionFindings:
    seen = InspectionFindings()
    logs = [walk_copy(each, check_crc=task.check_crc, may_map=task.may_map) for each in task.group]
    logs = with_witnessed_epochs(logs, task.leaders)
    lines = find_lines(logs, task.prefer_copy, task.node_ids, _COMPARED_BYTES)
    seen.leading[logs[0].partition.key] = lines.leading
    seen.divergences += lines.divergences
    seen.notes += lines.notes
    for log in logs:
        for number, walk in enumerate((*log.walks, *log.checkpoints)):
            _note(seen, log.partition, walk, sampled=_is_sampled(log, number))
    return seen


def _is_sampled(log: CopyLog, number: int) -> bool:
    return number % (len(log.walks) // _MOST_SAMPLED + 1) == 0


def _note(
    findings: InspectionFindings, partition: PartitionCopy, walk: SegmentWalk, *, sampled: bool
) -> None:
    stats = SegmentStats(walk.segment)
    for part in walk.parts:
        stats.add(part)
    survey = stats.survey(walk.damages, walk.tail, changed=walk.changed)
    findings.files.append((partition.copy, replace(survey, unreadable=walk.unreadable)))
    if sampled and walk.parts:
        ends = walk.parts[0].position + walk.parts[0].size
        end = int(ends[max(int(np.searchsorted(ends, SAMPLE_BYTES, "right")) - 1, 0)])
        if end <= SAMPLE_BYTES:
            findings.sample = findings.sample.add(
                sample_segment(partition.topic, walk.segment, end)
            )


def has_changed(partition: PartitionCopy) -> bool:
    """Whether files of a partition came, went or changed since it was listed."""
    entries = storage_of(partition.directory).list(partition.directory)
    now = {entry.name: (entry.size, entry.modified) for entry in entries if not entry.is_folder}
    for segment in partition.segments:
        name = segment.name.rpartition("/")[2]
        if now.pop(name, None) != (segment.size, segment.modified):
            return True
    known = {item.name for item in partition.ignored}
    return partition.whole and any(
        name.endswith((".log", ".swap", ".checkpoint")) and name not in known for name in now
    )
