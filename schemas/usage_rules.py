"""By what the internal topics are judged, read from `rules/usage.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.thresholds import NONE_GIVEN, GivenThresholds, rules_document

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class KafkaSetting:
    """A setting of a topic.

    Attributes:
        broker: What brokers call it.
        default: What is in force where nobody set it.
    """

    broker: str
    default: str


@dataclass(frozen=True)
class GrowingRecord:
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


def usage_rules(overrides: GivenThresholds = NONE_GIVEN) -> UsageRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    document = rules_document("usage", overrides)
    settings = {
        name: KafkaSetting(said["broker"], said["default"])
        for name, said in document["settings"].items()
        if name != "about"
    }
    growing = {
        name: GrowingRecord(said["grows_with"], tuple(said["lists"]))
        for name, said in document["growth"]["records"].items()
    }
    return UsageRules(
        settings,
        frozenset(document["compacted"]),
        document["cleaner"]["late_minutes"],
        dict(document["cleaner_verdicts"]),
        document["commits"]["interval_seconds"],
        document["commits"]["observed_seconds"],
        document["clocks"]["seconds"],
        document["near"]["share"],
        growing,
        document["one_shot"]["least_groups"],
        tuple((pattern, name) for pattern, name in document["one_shot"]["patterns"]),
        document["load"]["hot_times"],
        document["load"]["hot_megabytes"] * MEGABYTE,
        document["load"]["megabytes_per_second"] * MEGABYTE,
    )
