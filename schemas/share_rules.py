"""How share groups are judged: `rules/share.json`, and their limits, `rules/share_limits.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import field

from schemas.evaluation_rules import NONE_GIVEN, GivenThresholds, rules_of
from schemas.reading import Explained, Minutes, Number, Shape, load, words_of
from schemas.releases import release_key


class Bounds(Shape, frozen=True):
    """What a release, or the text, has of a setting.

    Attributes:
        default: Its default.
        least: The least that brokers take; None where they take any.
        most: The most.
    """

    default: int
    least: int | None
    most: int | None

    def hold(self, value: int) -> bool:
        """Return whether brokers take a value."""
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )


class BoundsSince(Bounds, frozen=True):
    """What releases have of a setting, from one on.

    Attributes:
        since: The first of them.
    """

    since: str = field(name="from")


class BoundsOfKip(Bounds, frozen=True):
    """What the text of KIP-932 has of a setting.

    Attributes:
        name: What it calls the setting.
    """

    name: str


class SettingOfGroup(Shape, frozen=True):
    """What a setting is called for a single group.

    Attributes:
        name: Its name there.
        since: The first release in which groups have it.
    """

    name: str
    since: str = field(name="from")


class Limit(Explained, frozen=True):
    """A limit of share groups.

    Attributes:
        about: What it limits.
        releases: What releases give it, the first of them first.
        evidence: What records show of it: delivery_count, window_offsets, members, groups or
            state_partitions; None where they show nothing.
        may_be_passed: More than that is no fault.
        of_group: What it is called for a single group; None where groups have none of their own.
        between: The settings that hold the least and the most of it; None where none do.
        kip: What the text gives it; None where the text does not have it.
        until: The first release that no longer has it; None where the last one has.
    """

    releases: tuple[BoundsSince, ...]
    evidence: str | None = field(name="seen", default=None)
    may_be_passed: bool = False
    of_group: SettingOfGroup | None = None
    between: tuple[str, str] | None = None
    kip: BoundsOfKip | None = None
    until: str | None = None

    def in_release(self, release: str) -> Bounds | None:
        """Return what a release gives it; None where the release does not have it."""
        asked = release_key(release)
        if self.until is not None and asked >= release_key(self.until):
            return None
        known = [each for each in self.releases if release_key(each.since) <= asked]
        return known[-1] if known else None


class _GroupType(Explained, frozen=True):
    name: str
    types: Sequence[str]


class _Limits(Explained, frozen=True):
    verdicts: Mapping[str, str]
    limits: Mapping[str, Limit]
    group_type: _GroupType


def share_limits() -> Mapping[str, Limit]:
    """Return every limit by its name, the setting of brokers."""
    return _limits().limits


def limit_verdicts() -> Mapping[str, str]:
    """Return what each verdict means, worst first."""
    return _limits().verdicts


def group_type_setting() -> tuple[str, Sequence[str]]:
    """Return what KIP-932 calls the setting of a group's type, and what it may be."""
    setting = _limits().group_type
    return setting.name, setting.types


@cache
def _limits() -> _Limits:
    return load(_Limits, "rules/share_limits.json")


class StepsSlack(Explained, frozen=True):
    """Up to how many seconds apart steps of different brokers count as in order."""

    slack_seconds: Number


class _Default(Shape, frozen=True):
    since: str = field(name="from")
    value: int


class _Setting(Explained, frozen=True):
    of_group: str
    defaults: tuple[_Default, ...]


class _PlainSetting(Explained, frozen=True):
    of_group: str
    default: str


class ShareRules(Explained, frozen=True):
    """From when on something is called wrong (`rules/share.json`).

    Attributes:
        settings: Settings of brokers that groups may have, too: their names and defaults.
        isolation: The isolation level of groups that have none of their own.
        offset_reset: Where share partitions begin of groups that say nothing of their own.
        stalled: A start offset that stands for longer is stalled.
        initializing: State that is about to be created for longer is stuck.
        deleting: The same of state that is about to be deleted.
        steps: Steps of different brokers count as in order up to so far apart.
        step_verdicts: What each verdict on steps means, worst first.
        transitions: By delivery state those that may follow it, and `about`.
        faults: What each fault means.
        statuses: What each status means, worst first.
    """

    settings: Mapping[str, str | _Setting]
    isolation: _PlainSetting
    offset_reset: _PlainSetting
    stalled: Minutes
    initializing: Minutes
    deleting: Minutes
    steps: StepsSlack
    step_verdicts: Mapping[str, str]
    transitions: Mapping[str, str | Sequence[str]]
    faults: Mapping[str, str]
    statuses: Mapping[str, str]

    def followers(self) -> Mapping[str, Sequence[str]]:
        """Return by delivery state those that may follow it."""
        return words_of(self.transitions)


def share_rules(overrides: GivenThresholds = NONE_GIVEN) -> ShareRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    return rules_of(ShareRules, "share", overrides)


def default_share_setting(name: str, release: str) -> int:
    """Return Kafka's own default of a setting of brokers."""
    values = _settings()[name].defaults
    known = [each for each in values if release_key(each.since) <= release_key(release)]
    return (known or values[:1])[-1].value


def share_settings() -> Mapping[str, str]:
    """Return the settings of brokers, and what each is called for a single group."""
    return {name: each.of_group for name, each in _settings().items()}


def default_isolation_level() -> str:
    """Return the isolation level of groups that have none of their own."""
    return _shipped().isolation.default


def default_offset_reset() -> str:
    """Return where share partitions begin of groups that say nothing of their own."""
    return _shipped().offset_reset.default


@cache
def _shipped() -> ShareRules:
    return share_rules()


@cache
def _settings() -> Mapping[str, _Setting]:
    settings = _shipped().settings
    return {name: each for name, each in settings.items() if not isinstance(each, str)}
