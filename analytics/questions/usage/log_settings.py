"""Which settings are in force for an internal topic at a broker, and who says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from schemas.usage_rules import UsageRules

GIVEN, METADATA_LOG, FILE, DEFAULT = "config", "metadata_log", "broker_config", "default"
"""Who says so."""
_POLICY: Final = "cleanup.policy"
_COMPACT: Final = "compact"


class InForce(NamedTuple):
    """A setting's value and its source: `GIVEN`, `METADATA_LOG`, `FILE` or `DEFAULT`."""

    value: str
    source: str


@dataclass(frozen=True)
class LogSettings:
    """Settings of topics and brokers.

    The topic's own setting goes first, as in Kafka; then what a person says of brokers, the
    broker's dynamic setting, that of all brokers, the broker's file, and Kafka's default
    (``DynamicBrokerConfig``).

    Attributes:
        rules: Names and defaults.
        dynamic: By type and name of the resource, what the metadata log says.
        brokers: By node what its file says; None is a file for all.
        given: What a person says brokers have, by the names that brokers have for it.
    """

    rules: UsageRules
    dynamic: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
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
        for row in configs:
            if row["value"] is not None:
                place = (row["resource_type"], row["resource"])
                dynamic.setdefault(place, {})[row["name"]] = row["value"]
        return cls(rules, dynamic, brokers or {}, given or {})

    def in_force(self, name: str, topic: str, node: int | None) -> InForce:
        """Return the setting that a topic calls by this name, at a broker; None is any."""
        setting = self.rules.settings[name]
        said = self.dynamic.get(("topic", topic), {})
        if name in said:
            return InForce(said[name], METADATA_LOG)
        if setting.broker in self.given:
            return InForce(self.given[setting.broker], GIVEN)
        for resource in dict.fromkeys(("" if node is None else str(node), "")):
            said = self.dynamic.get(("broker", resource), {})
            if setting.broker in said:
                return InForce(said[setting.broker], METADATA_LOG)
        for each in dict.fromkeys((node, None)):
            if setting.broker in self.brokers.get(each, {}):
                return InForce(self.brokers[each][setting.broker], FILE)
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
        said = self.dynamic.get(("topic", topic), {}).get(_POLICY)
        if said is None:
            return topic in self.rules.compacted
        return _COMPACT in [each.strip() for each in said.split(",")]

    def is_cleaner_on(self, topic: str, node: int | None) -> bool:
        """Return whether a broker runs a cleaner at all."""
        return self.in_force("log.cleaner.enable", topic, node).value.lower() != "false"
