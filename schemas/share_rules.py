"""How share groups are judged: `rules/share.json`, and their limits, `rules/share_limits.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from msgspec import field

from schemas.reading import Explained, Number, Shape, load, words_of
from schemas.releases import release_key
from schemas.thresholds import NONE_GIVEN, GivenThresholds, rules_of


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


@dataclass(frozen=True)
class Limit:
    """A limit of share groups.

    Attributes:
        name: The setting of brokers.
        about: What it limits.
        seen: What records show of it: delivery_count, window_offsets, members, groups or
            state_partitions; None where they show nothing.
        may_be_passed: More than that is no fault.
        of_group: What it is called for a single group; None where groups have none of their own.
        of_group_since: The first release in which they do.
        between: The settings that hold the least and the most of it; None where none do.
        kip_name: What KIP-932 calls it; None where the text does not have it.
        kip: What the text gives it.
        releases: What releases give it, by the first of them.
        until: The first release that no longer has it; None where the last one has.
    """

    name: str
    about: str
    seen: str | None
    may_be_passed: bool
    of_group: str | None
    of_group_since: str | None
    between: tuple[str, str] | None
    kip_name: str | None
    kip: Bounds | None
    releases: Mapping[str, Bounds]
    until: str | None

    def in_release(self, release: str) -> Bounds | None:
        """Return what a release gives it; None where the release does not have it."""
        asked = release_key(release)
        if self.until is not None and asked >= release_key(self.until):
            return None
        known = [said for since, said in self.releases.items() if release_key(since) <= asked]
        return known[-1] if known else None


class _BoundsSince(Bounds, frozen=True):
    since: str = field(name="from")


class _BoundsOfKip(Bounds, frozen=True):
    name: str


class _SettingOfGroup(Shape, frozen=True):
    name: str
    since: str = field(name="from")


class _Limit(Explained, frozen=True):
    releases: tuple[_BoundsSince, ...]
    evidence: str | None = field(name="seen", default=None)
    may_be_passed: bool = False
    of_group: _SettingOfGroup | None = None
    between: tuple[str, str] | None = None
    kip: _BoundsOfKip | None = None
    until: str | None = None


class _GroupType(Explained, frozen=True):
    name: str
    types: Sequence[str]


class _Limits(Explained, frozen=True):
    verdicts: Mapping[str, str]
    limits: Mapping[str, _Limit]
    group_type: _GroupType


@cache
def share_limits() -> Mapping[str, Limit]:
    """Return every limit by its name."""
    return {name: _limit(name, each) for name, each in _limits().limits.items()}


def limit_verdicts() -> Mapping[str, str]:
    """Return what each verdict means, worst first."""
    return _limits().verdicts


def group_type_setting() -> tuple[str, Sequence[str]]:
    """Return what KIP-932 calls the setting of a group's type, and what it may be."""
    setting = _limits().group_type
    return setting.name, setting.types


def _limit(name: str, limit: _Limit) -> Limit:
    own, kip = limit.of_group, limit.kip
    return Limit(
        name=name,
        about=limit.about,
        seen=limit.evidence,
        may_be_passed=limit.may_be_passed,
        of_group=None if own is None else own.name,
        of_group_since=None if own is None else own.since,
        between=limit.between,
        kip_name=None if kip is None else kip.name,
        kip=None if kip is None else _bounds(kip),
        releases={each.since: _bounds(each) for each in limit.releases},
        until=limit.until,
    )


def _bounds(of: Bounds) -> Bounds:
    return Bounds(of.default, of.least, of.most)


@cache
def _limits() -> _Limits:
    return load(_Limits, "rules/share_limits.json")


@dataclass(frozen=True)
class ShareRules:
    """From when on something is called wrong.

    Attributes:
        stalled_minutes: A start offset that stands for longer is stalled.
        initializing_minutes: State that is about to be created for longer is stuck.
        deleting_minutes: The same of state that is about to be deleted.
        steps_slack_seconds: Steps of different brokers count as in order up to so far apart.
        statuses: What each status means, worst first.
        faults: What each fault means.
        step_verdicts: What each verdict on steps means, worst first.
        transitions: By delivery state those that may follow it.
    """

    stalled_minutes: float
    initializing_minutes: float
    deleting_minutes: float
    steps_slack_seconds: float
    statuses: Mapping[str, str]
    faults: Mapping[str, str]
    step_verdicts: Mapping[str, str]
    transitions: Mapping[str, Sequence[str]]


class _Default(Shape, frozen=True):
    since: str = field(name="from")
    value: int


class _Setting(Explained, frozen=True):
    of_group: str
    defaults: tuple[_Default, ...]


class _Minutes(Explained, frozen=True):
    minutes: Number


class _Steps(Explained, frozen=True):
    slack_seconds: Number


class _PlainSetting(Explained, frozen=True):
    of_group: str
    default: str


class _Share(Explained, frozen=True):
    settings: Mapping[str, str | _Setting]
    isolation: _PlainSetting
    offset_reset: _PlainSetting
    stalled: _Minutes
    initializing: _Minutes
    deleting: _Minutes
    steps: _Steps
    step_verdicts: Mapping[str, str]
    transitions: Mapping[str, str | Sequence[str]]
    faults: Mapping[str, str]
    statuses: Mapping[str, str]


def share_rules(overrides: GivenThresholds = NONE_GIVEN) -> ShareRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    rules = rules_of(_Share, "share", overrides)
    return ShareRules(
        stalled_minutes=rules.stalled.minutes,
        initializing_minutes=rules.initializing.minutes,
        deleting_minutes=rules.deleting.minutes,
        steps_slack_seconds=rules.steps.slack_seconds,
        statuses=rules.statuses,
        faults=rules.faults,
        step_verdicts=rules.step_verdicts,
        transitions=words_of(rules.transitions),
    )


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
def _shipped() -> _Share:
    return rules_of(_Share, "share")


@cache
def _settings() -> Mapping[str, _Setting]:
    settings = _shipped().settings
    return {name: each for name, each in settings.items() if not isinstance(each, str)}
