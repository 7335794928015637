"""By what the internal topics are judged, read from `rules/usage.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType


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
class UsageRules:
    """How the internal topics are judged.

    Attributes:
        settings: Settings by the names that topics have for them.
        compacted: Topics that brokers create as compacted.
        late_minutes: A log that was due for longer should have been cleaned.
        cleaner_verdicts: What each verdict on the cleaner means, worst first.
    """

    settings: Mapping[str, KafkaSetting]
    compacted: frozenset[str]
    late_minutes: float
    cleaner_verdicts: Mapping[str, str]


@cache
def usage_rules() -> UsageRules:
    """Return the rules as they are shipped."""
    text = files(__package__).joinpath("rules/usage.json").read_text(encoding="utf-8")
    document = json.loads(text)
    settings = {
        name: KafkaSetting(said["broker"], said["default"])
        for name, said in document["settings"].items()
        if name != "about"
    }
    return UsageRules(
        MappingProxyType(settings),
        frozenset(document["compacted"]),
        document["cleaner"]["late_minutes"],
        MappingProxyType(document["cleaner_verdicts"]),
    )
