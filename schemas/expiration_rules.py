"""When brokers remove committed offsets, era by era, read from `rules/expiration_rules.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from msgspec import field

from schemas.evaluation_rules import NONE_GIVEN, GivenThresholds, rules_of
from schemas.reading import Explained, Number, SchemaError, Shape, words_of
from schemas.releases import release_key

_FILE = "rules/expiration_rules.json"

RETENTION = "offsets.retention.minutes"
CHECK_INTERVAL = "offsets.retention.check.interval.ms"
EXPIRE_TIME, NO_EXPIRE_TIME, ELSEWHERE = "expire_time", "no_expire_time", "elsewhere"
OF_BROKER, OF_REQUEST = "broker", "request"
OFFSET_STATUSES = ("overdue", "due", "blocked", "cannot_tell", "scheduled", "protected")
"""Of the table `offset_expiration`, worst first."""
BASES = ("commit", "state", "end_of_protection", "none")


class CommitRequest(Shape, frozen=True):
    """What a commit by some versions of OffsetCommit is given as expire time.

    Attributes:
        request: The versions, and what the request says.
        stores: `EXPIRE_TIME`, `NO_EXPIRE_TIME` or `ELSEWHERE`.
        about: The rule in words.
        retention: Whose retention goes into the expire time: `OF_BROKER` or `OF_REQUEST`; None
            where there is none.
    """

    request: str
    stores: Literal["expire_time", "no_expire_time", "elsewhere"]
    about: str
    retention: Literal["broker", "request"] | None = None


@dataclass(frozen=True)
class ExpirationRules:
    """The rules of one era.

    Attributes:
        name: pre-2.1, 2.1-2.3, 2.4-3.1, 3.2-3.9, current, or kip-211 for the text of the KIP.
        since: The first release; None for the KIP's text, which no release went by.
        due: ``at``: an offset is due from its instant on; ``after``: a millisecond later.
        expire_timestamp: When a stored expire time counts: ``always`` or ``where_not_kept``.
        rule_of_expire_timestamp: What the rule of a stored expire time is called in `rule_name`.
        pending_transaction_keeps: Whether a pending commit keeps the committed offset.
        heeds: What keeps an offset that is due; of several the first is the rule.
        counts_from: By what the group is, what the retention counts from: one of `BASES`.
        per_offset: Whether each offset has an expire time of its own, given or not.
        rebalance_keeps: Whether a group of consumers keeps all its offsets while it rebalances.
        requests: What a commit of each version of the request is given.
    """

    name: str
    since: str | None
    due: str
    expire_timestamp: str
    rule_of_expire_timestamp: str
    pending_transaction_keeps: bool
    heeds: tuple[str, ...]
    counts_from: Mapping[str, str]
    per_offset: bool
    rebalance_keeps: bool
    requests: Sequence[CommitRequest]


@dataclass(frozen=True)
class AuditRules:
    """How removals are judged.

    Attributes:
        slack_share: How much of a check interval a removal may come later than that, on time.
        slack_least_ms: At least how much later.
        start_ms: How long a coordinator may take to begin, before its first interval.
    """

    slack_share: float
    slack_least_ms: int
    start_ms: int


class _Era(Explained, frozen=True):
    since: str | None = field(name="from")
    due: Literal["at", "after"]
    expire_timestamp: Literal["always", "where_not_kept"]
    rule_of_expire_timestamp: str
    pending_transaction_keeps: bool
    heeds: tuple[str, ...]
    counts_from: Mapping[str, Literal["commit", "state", "end_of_protection", "none"]]
    per_offset: bool
    rebalance_keeps: bool
    requests: tuple[CommitRequest, ...]


class _Default(Shape, frozen=True):
    since: str = field(name="from")
    value: int


class _Setting(Explained, frozen=True):
    dynamic_from: str | None
    defaults: tuple[_Default, ...]


class _Slack(Explained, frozen=True):
    share: Number
    least_ms: int


class _Start(Explained, frozen=True):
    ms: int


class _Pattern(Shape, frozen=True):
    matches: str
    tool: str
    called: str


class _Patterns(Explained, frozen=True):
    patterns: tuple[_Pattern, ...]


class _Expiration(Explained, frozen=True):
    settings: Mapping[str, str | _Setting]
    slack: _Slack
    start: _Start
    group_endings: Mapping[str, str]
    generated_names: _Patterns
    rule_names: Mapping[str, str]
    eras: Mapping[str, _Era]


@cache
def expiration_eras() -> Mapping[str, ExpirationRules]:
    """Return the rules of every era by name, oldest first, the KIP's text last.

    Raises:
        SchemaError: A base is none of `BASES`, or the file is otherwise wrong.
    """
    return {
        name: ExpirationRules(
            name=name,
            since=era.since,
            due=era.due,
            expire_timestamp=era.expire_timestamp,
            rule_of_expire_timestamp=era.rule_of_expire_timestamp,
            pending_transaction_keeps=era.pending_transaction_keeps,
            heeds=era.heeds,
            counts_from=era.counts_from,
            per_offset=era.per_offset,
            rebalance_keeps=era.rebalance_keeps,
            requests=era.requests,
        )
        for name, era in _document().eras.items()
    }


def era_of_release(release: str) -> ExpirationRules:
    """Return the rules of a release ("3.9", "4.3.1").

    Raises:
        SchemaError: The release is older than any era.
    """
    known = [
        era
        for era in expiration_eras().values()
        if era.since and release_key(era.since) <= release_key(release)
    ]
    if not known:
        raise SchemaError(f"has no era for release {release}", file=_FILE)
    return known[-1]


def default_setting(name: str, release: str) -> int:
    """Return Kafka's own default of `RETENTION` (minutes) or `CHECK_INTERVAL` (milliseconds)."""
    values = _setting(name).defaults
    known = [each for each in values if release_key(each.since) <= release_key(release)]
    return (known or values[:1])[-1].value


def is_dynamic(name: str, release: str) -> bool:
    """Return whether brokers of a release heed a change of the setting while they run."""
    since = _setting(name).dynamic_from
    return since is not None and release_key(since) <= release_key(release)


def rule_name(what: str) -> str:
    """Return what the rule is called that goes by a kind of group, or by what keeps an offset."""
    return _document().rule_names[what]


def rule_names() -> Mapping[str, str]:
    """Return `rule_name` of everything that has one."""
    return words_of(_document().rule_names)


def group_endings() -> Mapping[str, str]:
    """Return what may have become of a group whose offsets have all expired, worst first."""
    return words_of(_document().group_endings)


def audit_rules(overrides: GivenThresholds = NONE_GIVEN) -> AuditRules:
    """Return how removals are judged, as shipped or as a team has it.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    rules = rules_of(_Expiration, "expiration", overrides)
    return AuditRules(rules.slack.share, rules.slack.least_ms, rules.start.ms)


def _setting(name: str) -> _Setting:
    setting = _document().settings[name]
    if isinstance(setting, str):
        raise KeyError(name)
    return setting


@cache
def _document() -> _Expiration:
    return rules_of(_Expiration, "expiration")


# Groups that Kafka's own tools name by themselves.


def tools_by_pattern() -> list[tuple[str, str]]:
    """Return what a whole name of a group matches that a tool made up, and the tool.

    Each run of such a tool makes another name: nobody comes back for what it committed (KIP-211,
    "Another Related Change").
    """
    return [(pattern.pattern, tool) for pattern, tool, _ in _patterns()]


def shared_names() -> list[tuple[str, str]]:
    """Return what a whole name matches, and what all groups of such a name are called together."""
    return [(pattern.pattern, name) for pattern, _, name in _patterns()]


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str, str], ...]:
    patterns = _document().generated_names.patterns
    return tuple((re.compile(each.matches), each.tool, each.called) for each in patterns)
