"""How the backlog of share groups is judged, read from `rules/share.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from schemas.releases import release_key
from schemas.thresholds import NONE_GIVEN, GivenThresholds, rules_document

# The limits of share groups as releases and KIP-932's text have them (`share_limits.json`).

_FILE = "rules/share_limits.json"


@dataclass(frozen=True)
class Bounds:
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


@cache
def share_limits() -> Mapping[str, Limit]:
    """Return every limit by its name."""
    return {name: _limit(name, said) for name, said in _document()["limits"].items()}


def limit_verdicts() -> Mapping[str, str]:
    """Return what each verdict means, worst first."""
    verdicts: dict[str, str] = _document()["verdicts"]
    return verdicts


def group_type_setting() -> tuple[str, Sequence[str]]:
    """Return what KIP-932 calls the setting of a group's type, and what it may be."""
    said = _document()["group_type"]
    return said["name"], said["types"]


def _limit(name: str, limit: Mapping[str, Any]) -> Limit:
    own, kip, between = (limit.get(each) for each in ("of_group", "kip", "between"))
    return Limit(
        name=name,
        about=limit["about"],
        seen=limit.get("seen"),
        may_be_passed=limit.get("may_be_passed", False),
        of_group=own and own["name"],
        of_group_since=own and own["from"],
        between=between and (between[0], between[1]),
        kip_name=kip and kip["name"],
        kip=kip and _bounds(kip),
        releases={each["from"]: _bounds(each) for each in limit["releases"]},
        until=limit.get("until"),
    )


def _bounds(limit: Mapping[str, Any]) -> Bounds:
    return Bounds(limit["default"], limit["least"], limit["most"])


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    return document


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


def share_rules(overrides: GivenThresholds = NONE_GIVEN) -> ShareRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    document = rules_document("share", overrides)
    return ShareRules(
        stalled_minutes=document["stalled"]["minutes"],
        initializing_minutes=document["initializing"]["minutes"],
        deleting_minutes=document["deleting"]["minutes"],
        steps_slack_seconds=document["steps"]["slack_seconds"],
        statuses=document["statuses"],
        faults=document["faults"],
        step_verdicts=document["step_verdicts"],
        transitions={
            state: after for state, after in document["transitions"].items() if state != "about"
        },
    )


def default_share_setting(name: str, release: str) -> int:
    """Return Kafka's own default of a setting of brokers."""
    values = _settings()[name]["defaults"]
    known = [each for each in values if release_key(each["from"]) <= release_key(release)]
    return int((known or values[:1])[-1]["value"])


def share_settings() -> Mapping[str, str]:
    """Return the settings of brokers, and what each is called for a single group."""
    return {name: said["of_group"] for name, said in _settings().items()}


def default_isolation_level() -> str:
    """Return the isolation level of groups that have none of their own."""
    return str(rules_document("share")["isolation"]["default"])


def default_offset_reset() -> str:
    """Return where share partitions begin of groups that say nothing of their own."""
    return str(rules_document("share")["offset_reset"]["default"])


def _settings() -> dict[str, Any]:
    settings = rules_document("share")["settings"]
    return {name: said for name, said in settings.items() if name != "about"}
