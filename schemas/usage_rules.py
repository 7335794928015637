"""By what the internal topics are judged, read from `rules/usage.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.evaluation_rules import NONE_GIVEN, GivenThresholds, rules_of
from schemas.reading import Explained, Number, Shape

MEGABYTE = 1_000_000


class KafkaSetting(Shape, frozen=True):
    """A setting of a topic.

    Attributes:
        broker: What brokers call it.
        default: What is in force where nobody set it.
    """

    broker: str
    default: str


class GrowingRecord(Shape, frozen=True):
    """A record type that grows with a group.

    Attributes:
        grows_with: members or topics.
        lists: Fields of its value, as Parquet's paths: of the list, and one leaf below it.
    """

    grows_with: str
    lists: tuple[str, ...]


@dataclass(frozen=True)
class UsageRules:
    """How the internal topics are judged.

    Attributes:
        settings: Settings by the names that topics have for them.
        compacted: Topics that brokers create as compacted.
        late_minutes: A log that was due for longer should have been cleaned.
        cleaner_verdicts: What each verdict on the cleaner means, worst first.
        interval_seconds: Commits are held against one an offset and so many seconds.
        observed_seconds: A rate is told of so long a time at least.
        clock_seconds: Times of one record that are further apart contradict each other.
        near_share: More than this of a limit is near it.
        growing: Record types that grow with a group, by their tables.
        least_groups: So many groups of one pattern are a cluster.
        patterns: Regular expressions for what of a name looks generated, and what stands for it.
        hot_times: A partition is hot where it has more than so many times the mean bytes,
        hot_bytes: and more than so many.
        load_bytes_per_second: What a coordinator is taken to read.
    """

    settings: Mapping[str, KafkaSetting]
    compacted: frozenset[str]
    late_minutes: float
    cleaner_verdicts: Mapping[str, str]
    interval_seconds: float
    observed_seconds: float
    clock_seconds: float
    near_share: float
    growing: Mapping[str, GrowingRecord]
    least_groups: int
    patterns: tuple[tuple[str, str], ...]
    hot_times: float
    hot_bytes: float
    load_bytes_per_second: float


class _Cleaner(Explained, frozen=True):
    late_minutes: Number


class _Commits(Explained, frozen=True):
    interval_seconds: Number
    observed_seconds: Number


class _Clocks(Explained, frozen=True):
    seconds: Number


class _Near(Explained, frozen=True):
    share: Number


class _Growth(Explained, frozen=True):
    records: Mapping[str, GrowingRecord]


class _OneShot(Explained, frozen=True):
    least_groups: int
    patterns: tuple[tuple[str, str], ...]


class _Load(Explained, frozen=True):
    hot_times: Number
    hot_megabytes: Number
    megabytes_per_second: Number


class _Usage(Explained, frozen=True):
    settings: Mapping[str, str | KafkaSetting]
    compacted: frozenset[str]
    cleaner: _Cleaner
    cleaner_verdicts: Mapping[str, str]
    commits: _Commits
    clocks: _Clocks
    near: _Near
    growth: _Growth
    one_shot: _OneShot
    load: _Load


def usage_rules(overrides: GivenThresholds = NONE_GIVEN) -> UsageRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    rules = rules_of(_Usage, "usage", overrides)
    settings = {name: each for name, each in rules.settings.items() if not isinstance(each, str)}
    return UsageRules(
        settings=settings,
        compacted=rules.compacted,
        late_minutes=rules.cleaner.late_minutes,
        cleaner_verdicts=rules.cleaner_verdicts,
        interval_seconds=rules.commits.interval_seconds,
        observed_seconds=rules.commits.observed_seconds,
        clock_seconds=rules.clocks.seconds,
        near_share=rules.near.share,
        growing=rules.growth.records,
        least_groups=rules.one_shot.least_groups,
        patterns=rules.one_shot.patterns,
        hot_times=rules.load.hot_times,
        hot_bytes=rules.load.hot_megabytes * MEGABYTE,
        load_bytes_per_second=rules.load.megabytes_per_second * MEGABYTE,
    )
