"""Whether Kafka's cleaner keeps up with a log: how dirty it is, since when, and what shows it.

By the rules of ``LogCleanerManager.grabFilthiestCompactedLog``: a log is cleaned where the bytes
that could be cleaned are more than `min.cleanable.dirty.ratio` of those and of the clean ones
together, or where a record waits for longer than `max.compaction.lag.ms`. The active segment counts
for neither.

When files were last modified proves nothing: cleaned segments keep the time of those they replace,
and copies have that of the copying. The cleaner's checkpoint says how far it came. Its delete
horizons (KIP-534) say when it passed: a horizon is the time of a pass plus `delete.retention.ms`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from schemas.manifest import AccountEntry, PartitionEntry
    from schemas.usage_rules import UsageRules

# Which settings are in force for an internal topic at a broker, and who says so.

GIVEN, METADATA_LOG, FILE, DEFAULT = "config", "metadata_log", "broker_config", "default"
SNAPSHOT: Final = "snapshot"
"""Who says so."""
_POLICY: Final = "cleanup.policy"
_COMPACT: Final = "compact"


class InForce(NamedTuple):
    """A setting's value and its source: `GIVEN`, `METADATA_LOG`, `SNAPSHOT`, `FILE`, `DEFAULT`."""

    value: str
    source: str


@dataclass(frozen=True)
class LogSettings:
    """Settings of topics and brokers.

    The topic's own setting goes first, as in Kafka; then what a person says of brokers, the
    broker's dynamic setting, that of all brokers, the broker's file, and Kafka's default
    (``DynamicBrokerConfig``). What brokers answered to a snapshot counts where no file says it.

    Attributes:
        rules: Names and defaults.
        dynamic: By type and name of the resource, what the metadata log says.
        answered: Likewise, what the cluster answered to a snapshot.
        brokers: By node what its file says; None is a file for all.
        given: What a person says brokers have, by the names that brokers have for it.
    """

    rules: UsageRules
    dynamic: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    answered: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    brokers: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rules: UsageRules,
        configs: Iterable[Mapping[str, Any]] = (),
        brokers: Mapping[int | None, Mapping[str, str]] | None = None,
        given: Mapping[str, str] | None = None,
    ) -> LogSettings:
        """Take rows of the state table `configs`, and what brokers' files say."""
        dynamic: dict[tuple[str, str], dict[str, str]] = {}
        answered: dict[tuple[str, str], dict[str, str]] = {}
        for row in configs:
            if row["value"] is not None:
                place = (row["resource_type"], row["resource"])
                by_resource = answered if row.get("source") == SNAPSHOT else dynamic
                by_resource.setdefault(place, {})[row["name"]] = row["value"]
        return cls(rules, dynamic, answered, brokers or {}, given or {})

    def in_force(self, name: str, topic: str, node: int | None) -> InForce:
        """Return the setting that a topic calls by this name, at a broker; None is any."""
        setting = self.rules.settings[name]
        for source, by_resource in ((METADATA_LOG, self.dynamic), (SNAPSHOT, self.answered)):
            said = by_resource.get(("topic", topic), {})
            if name in said:
                return InForce(said[name], source)
        if setting.broker in self.given:
            return InForce(self.given[setting.broker], GIVEN)
        for resource in dict.fromkeys(("" if node is None else str(node), "")):
            said = self.dynamic.get(("broker", resource), {})
            if setting.broker in said:
                return InForce(said[setting.broker], METADATA_LOG)
        for each in dict.fromkeys((node, None)):
            if setting.broker in self.brokers.get(each, {}):
                return InForce(self.brokers[each][setting.broker], FILE)
        for resource in dict.fromkeys(("" if node is None else str(node), "")):
            said = self.answered.get(("broker", resource), {})
            if setting.broker in said:
                return InForce(said[setting.broker], SNAPSHOT)
        return InForce(setting.default, DEFAULT)

    def number(self, name: str, topic: str, node: int | None) -> float:
        """Return a setting as a number; the default where what is stored is none."""
        value = self.in_force(name, topic, node).value
        try:
            return float(value)
        except ValueError:
            return float(self.rules.settings[name].default)

    def is_compacted(self, topic: str) -> bool:
        """Return whether the cleaner compacts a topic."""
        of_topic = "topic", topic
        own = {**self.answered.get(of_topic, {}), **self.dynamic.get(of_topic, {})}
        said = own.get(_POLICY)
        if said is None:
            return topic in self.rules.compacted
        return _COMPACT in [each.strip() for each in said.split(",")]

    def is_cleaner_on(self, topic: str, node: int | None) -> bool:
        """Return whether a broker runs a cleaner at all."""
        return self.in_force("log.cleaner.enable", topic, node).value.lower() != "false"


DEAD, PASSED_OVER, DISABLED, CANNOT_TELL = "dead", "passed_over", "disabled", "cannot_tell"
DUE, ALIVE, NOT_DUE, NOTHING = "due", "alive", "not_due", "nothing_to_clean"
NOT_COMPACTED = "not_compacted"
MINUTE_MS: Final = 60_000
_LOG: Final = "log"


class Segment(NamedTuple):
    """A segment: its base offset, bytes, and the times of its first and last record, ms."""

    base_offset: int
    size: int
    first_ms: int | None
    last_ms: int | None


@dataclass(frozen=True)
class LogFiles:
    """A copy of a log.

    Attributes:
        segments: In the order of offsets; the last is active.
        first_dirty: The cleaner's checkpoint; None where there is none.
        start: Log start offset.
        end: Log end offset.
        last_stable: First offset of an open transaction, or the log's end.
        horizons: Delete horizons: (milliseconds, first offset, end offset), by offset.
        thinned_to: End of the last offset that compaction has removed something before; None
            where nothing shows.
    """

    segments: tuple[Segment, ...]
    first_dirty: int | None
    start: int
    end: int
    last_stable: int
    horizons: tuple[tuple[int, int, int], ...] = ()
    thinned_to: int | None = None

    @classmethod
    def of(
        cls,
        partition: PartitionEntry,
        account: AccountEntry,
        last_stable: int | None = None,
    ) -> LogFiles:
        """Take what the manifest says of a copy of a partition.

        Args:
            partition: Of its `partitions`.
            account: Of its `reconciliation`.
            last_stable: First offset of an open transaction, where one is.
        """
        segments = sorted(
            Segment(
                int(each["name"].rpartition("/")[2][:20]),
                each["size"],
                milliseconds(each.get("first_timestamp")),
                milliseconds(each.get("last_timestamp")),
            )
            for each in partition["files"]
            if each["kind"] == _LOG
        )
        end = partition["end_offset"] or 0
        first = segments[0].base_offset if segments else 0
        # The last stable offset is never above the high watermark.
        limits = [last_stable, partition.get("high_watermark")]
        stable = min([end, *(each for each in limits if each is not None)])
        horizons = tuple(
            (each["horizon_ms"], each["first_offset"], each["end_offset"])
            for each in account.get("delete_horizons", ())
        )
        thinned = [partition.get("thinned_end")]
        dirty = partition.get("first_dirty_offset")
        thinned += [
            gap["end_offset"] for gap in partition.get("gaps", ()) if gap["kind"] == "compaction"
        ]
        return cls(
            tuple(segments),
            dirty,
            max(first, partition.get("log_start_offset") or 0),
            end,
            stable,
            horizons,
            max((each for each in thinned if each is not None), default=None),
        )

    @property
    def active(self) -> Segment:
        """The segment that is written to; there must be one."""
        return self.segments[-1]

    @property
    def dirty_from(self) -> int | None:
        """The first offset that was not cleaned (``LogCleanerManager.cleanableOffsets``)."""
        if self.first_dirty is None:
            return None
        is_valid = self.start <= self.first_dirty <= self.end
        return self.first_dirty if is_valid else self.start

    def cleanable_to(self, not_after_ms: float | None = None) -> int:
        """Return the offset up to which the cleaner may go: always the start of a segment.

        Not into the active segment, nor into the one with the first open transaction, nor where
        records are younger than `min.compaction.lag.ms` (``calculateCleanableBytes``).

        Args:
            not_after_ms: A segment with a record later than this must wait.
        """
        bound = min(self.active.base_offset, self._segment_of(self.last_stable).base_offset)
        if not_after_ms is not None:
            dirty = self.dirty_from or self.start
            young = [
                each.base_offset
                for each in self.segments[:-1]
                if each.base_offset >= self._segment_of(dirty).base_offset
                and each.last_ms is not None
                and each.last_ms > not_after_ms
            ]
            bound = min([bound, *young])
        return bound

    def clean_bytes(self, dirty_from: int) -> int:
        """Return bytes of segments that begin below the first dirty offset."""
        return sum(each.size for each in self.segments if each.base_offset < dirty_from)

    def cleanable_bytes(self, dirty_from: int, bound: int) -> int:
        """Return bytes of segments from the one with the first dirty offset up to a bound."""
        return sum(each.size for each in self.cleanable(dirty_from, bound))

    def cleanable(self, dirty_from: int, bound: int) -> list[Segment]:
        """Return the segments from the one with the first dirty offset up to a bound."""
        if dirty_from >= bound:
            return []
        first = self._segment_of(dirty_from).base_offset
        return [each for each in self.segments if first <= each.base_offset < bound]

    def _segment_of(self, offset: int) -> Segment:
        place = bisect_right([each.base_offset for each in self.segments], offset) - 1
        return self.segments[max(place, 0)]


def milliseconds(time: str | None) -> int | None:
    """Return a time of the manifest as epoch milliseconds; None for none."""
    return None if time is None else round(datetime.fromisoformat(time).timestamp() * 1000)


@dataclass(frozen=True)
class CleanerSettings:
    """The settings in force for a log.

    Attributes:
        is_compacted: `cleanup.policy` has compact.
        is_on: `log.cleaner.enable`.
        min_dirty_ratio: `min.cleanable.dirty.ratio`.
        delete_retention_ms: `delete.retention.ms`.
        min_lag_ms: `min.compaction.lag.ms`.
        max_lag_ms: `max.compaction.lag.ms`.
    """

    is_compacted: bool = True
    is_on: bool = True
    min_dirty_ratio: float = 0.5
    delete_retention_ms: float = 86_400_000
    min_lag_ms: float = 0
    max_lag_ms: float = 2**63 - 1


@dataclass(frozen=True)
class Cleaning:
    """What is known of the cleaning of one copy of a partition.

    Attributes:
        verdict: A key of the rules' `cleaner_verdicts`.
        evidence: What shows it, in words.
        dirty_from: First offset that was not cleaned, None where not known.
        cleanable_to: The cleaner may go up to here.
        clean_bytes: Of segments that begin below `dirty_from`.
        cleanable_bytes: Of segments from there up to `cleanable_to`.
        active_bytes: Of the active segment.
        dirty_ratio: Kafka's, None where there is nothing to take it of.
        due_since_ms: Since when the cleaner should have come.
        passed_at_ms: When the cleaner set the latest delete horizon.
        oldest_dirty_ms: Time of the first record that was not cleaned.
    """

    verdict: str
    evidence: str
    dirty_from: int | None = None
    cleanable_to: int | None = None
    clean_bytes: int | None = None
    cleanable_bytes: int | None = None
    active_bytes: int | None = None
    dirty_ratio: float | None = None
    due_since_ms: int | None = None
    passed_at_ms: int | None = None
    oldest_dirty_ms: int | None = None


def cleaning_of(log: LogFiles | None, settings: CleanerSettings, now_ms: int | None) -> Cleaning:
    """Return what is known of the cleaning of a log; of other logs nothing is asked.

    A log that has been due for any time is `due`: whether that is too long `judged` says.

    Args:
        log: The files; None where there are none (archived rows).
        settings: Those in force.
        now_ms: The end of the copy, None where no record has a time.
    """
    if not settings.is_compacted:
        return Cleaning(NOT_COMPACTED, "cleanup.policy does not have compact")
    if log is None or not log.segments:
        return Cleaning(CANNOT_TELL, "there are no segments")
    not_after = None
    if settings.min_lag_ms > 0:
        not_after = (now_ms or 0) - settings.min_lag_ms
    bound = log.cleanable_to(not_after)
    found = Cleaning(
        "",
        "",
        dirty_from=log.dirty_from,
        cleanable_to=bound,
        active_bytes=log.active.size,
        passed_at_ms=_passed_at(log, settings),
    )
    if not settings.is_on:
        return replace(found, verdict=DISABLED, evidence="log.cleaner.enable is false")
    if bound <= log.segments[0].base_offset:
        found = replace(found, clean_bytes=0, cleanable_bytes=0)
        what = "the active segment" if len(log.segments) == 1 else "behind an open transaction"
        return replace(found, verdict=NOTHING, evidence=f"the whole log is {what}")
    dirty = log.dirty_from
    if dirty is None:
        return replace(
            found,
            verdict=CANNOT_TELL,
            evidence="the dump has no cleaner-offset-checkpoint of this broker",
        )
    return _told(_measured(found, log, dirty, bound), log, settings, now_ms)


def judged(found: Iterable[Cleaning], now_ms: int | None, late_minutes: float) -> list[Cleaning]:
    """Say of the logs of one broker that are due which have been so for too long.

    One cleaner serves all of them: where it shows itself elsewhere it is alive.

    Args:
        found: The logs.
        now_ms: The end of the broker's copy.
        late_minutes: So long is too long.
    """
    logs = list(found)
    passes = [each.passed_at_ms for each in logs if each.passed_at_ms is not None]
    latest = max(passes, default=None)
    return [_judged(each, now_ms, late_minutes, latest) for each in logs]


def _judged(
    log: Cleaning, now_ms: int | None, late_minutes: float, latest_ms: int | None
) -> Cleaning:
    if log.verdict != DUE or log.due_since_ms is None or now_ms is None:
        return log
    if now_ms - log.due_since_ms <= late_minutes * MINUTE_MS:
        return log
    if latest_ms is not None and latest_ms > log.due_since_ms:
        more = "; the cleaner set delete horizons in other partitions since"
        return replace(log, verdict=PASSED_OVER, evidence=log.evidence + more)
    more = "; no delete horizon on this broker is of later"
    return replace(log, verdict=DEAD, evidence=log.evidence + more)


def _measured(found: Cleaning, log: LogFiles, dirty: int, bound: int) -> Cleaning:
    clean, cleanable = log.clean_bytes(dirty), log.cleanable_bytes(dirty, bound)
    times = [each.first_ms for each in log.segments if each.base_offset >= dirty]
    return replace(
        found,
        clean_bytes=clean,
        cleanable_bytes=cleanable,
        dirty_ratio=cleanable / (clean + cleanable) if clean + cleanable else None,
        oldest_dirty_ms=next((each for each in times if each is not None), None),
    )


def _told(
    found: Cleaning, log: LogFiles, settings: CleanerSettings, now_ms: int | None
) -> Cleaning:
    dirty, bound = found.dirty_from, found.cleanable_to
    assert dirty is not None
    assert bound is not None
    been = _has_been(log, dirty)
    if not found.cleanable_bytes:
        verdict = ALIVE if been else NOTHING
        return replace(found, verdict=verdict, evidence=been or "nothing behind the active segment")
    since, why = _due_since(log, dirty, bound, settings, now_ms)
    if why is None:
        ratio = f"dirty ratio {found.dirty_ratio:.2f} is not above {settings.min_dirty_ratio:g}"
        evidence = f"{been}; {ratio}" if been else ratio
        return replace(found, verdict=ALIVE if been else NOT_DUE, evidence=evidence)
    evidence = f"{been}; {why}" if been else f"never cleaned; {why}"
    return replace(found, verdict=DUE, evidence=evidence, due_since_ms=since)


def _has_been(log: LogFiles, dirty: int) -> str:
    """Return what shows that the cleaner has ever been here, in words; empty where nothing does."""
    if dirty > log.start:
        return f"its checkpoint is {dirty:,}"
    if log.thinned_to is not None:
        return f"records are missing up to offset {log.thinned_to:,} as after compaction"
    return ""


def _passed_at(log: LogFiles, settings: CleanerSettings) -> int | None:
    latest = max((horizon for horizon, _, _ in log.horizons), default=None)
    return None if latest is None else round(latest - settings.delete_retention_ms)


def _due_since(
    log: LogFiles, dirty: int, bound: int, settings: CleanerSettings, now_ms: int | None
) -> tuple[int | None, str | None]:
    """Return since when the log is due, and why; no reason where it is not.

    A segment can be cleaned once the next one is begun, which the first record of that one tells.
    """
    clean = log.clean_bytes(dirty)
    waiting = log.cleanable(dirty, bound)
    size = 0
    due: list[tuple[int | None, str]] = []
    for segment in waiting:
        size += segment.size
        ratio = size / (clean + size) if clean + size else 0
        if ratio > settings.min_dirty_ratio:
            following = next(
                each for each in log.segments if each.base_offset > segment.base_offset
            )
            why = f"dirty ratio is above {settings.min_dirty_ratio:g}"
            due.append((following.first_ms, why))
            break
    first = next((each.first_ms for each in waiting if each.first_ms is not None), None)
    if first is not None and now_ms is not None and first + settings.max_lag_ms < now_ms:
        why = "a record waits for longer than max.compaction.lag.ms"
        due.append((round(first + settings.max_lag_ms), why))
    if not due:
        return None, None
    return min(due, key=lambda each: (each[0] is None, each[0] or 0))
