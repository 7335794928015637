"""How the backlog of share groups is judged, read from `rules/share.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.releases import release_key
from schemas.thresholds import NONE_GIVEN, GivenThresholds, rules_document


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
