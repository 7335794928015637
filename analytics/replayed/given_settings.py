"""Settings of brokers and thresholds of rules that a person gives, beside what the dump says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from analytics.replay.dump.choices import ONE_REPLICA, UNCLEAN_ELECTIONS_OFF
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from schemas.evaluation_rules import NONE_GIVEN, GivenThresholds

PARTITIONS_SETTINGS: Final = {
    CONSUMER_OFFSETS: "offsets.topic.num.partitions",
    SHARE_GROUP_STATE: "share.coordinator.state.topic.num.partitions",
}
"""By internal topic, the setting of brokers that says how many partitions it is made with."""

_MAY_BE_UNCLEAN: Final = "unclean.leader.election.enable"
_OFFSETS_REPLICAS: Final = "offsets.topic.replication.factor"


@dataclass(frozen=True)
class BrokerSettings:
    """What one `server.properties` says.

    Attributes:
        name: The file, as it was given.
        node: `node.id` or `broker.id`; None where it names none.
        values: Every setting in it.
    """

    name: str
    node: int | None
    values: Mapping[str, str]


@dataclass(frozen=True)
class GivenSettings:
    """What the YAML file of `--config` says.

    Attributes:
        values: Kafka's settings.
        groups: Settings of single groups.
        rules: Thresholds, by the question they belong to.
        findings: Of an audit: severities and thresholds by rule.
        suppressions: Of an audit: findings that are accepted.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    findings: Mapping[str, Any] = field(default_factory=dict)
    suppressions: Sequence[Any] = ()

    def thresholds(self, question: str) -> GivenThresholds:
        """Return the thresholds that a question is given here."""
        return self.rules.get(question) or NONE_GIVEN


@dataclass(frozen=True)
class Settings:
    """What a person says of settings.

    Attributes:
        brokers: Files of `--broker-config`.
        from_file: The file of `--config`.
    """

    brokers: Sequence[BrokerSettings] = ()
    from_file: GivenSettings = field(default_factory=GivenSettings)

    def of_elections(self) -> tuple[str, ...]:
        """Return what the settings say of elections: names of `analytics.replay.dump.choices`.

        Each broker has to say it: where one says nothing its release's default counts, which was
        to allow unclean elections before 0.11.
        """
        says = {
            UNCLEAN_ELECTIONS_OFF: (_MAY_BE_UNCLEAN, "false"),
            ONE_REPLICA: (_OFFSETS_REPLICAS, "1"),
        }
        return tuple(name for name, (of, value) in says.items() if self._all_say(of) == value)

    def _all_say(self, name: str) -> str | None:
        """Return the value of a setting that all brokers have; None where one may have another."""
        everywhere = self.from_file.values.get(name)
        extra = [] if everywhere is None and self.brokers else [everywhere]
        own = (each.values.get(name, everywhere) for each in self.brokers)
        values = {None if each is None else each.strip().lower() for each in (*own, *extra)}
        return next(iter(values)) if len(values) == 1 else None

    def partitions_of(self, topic: str) -> int | None:
        """Return how many partitions an internal topic is made with; None where files differ."""
        name = PARTITIONS_SETTINGS.get(topic)
        if name is None:
            return None
        every = (self.from_file.values, *(each.values for each in self.brokers))
        counts = {each[name].strip() for each in every if name in each}
        (only,) = counts if len(counts) == 1 else ("",)
        return int(only) if only.isascii() and only.isdecimal() and int(only) else None
