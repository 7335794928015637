"""Which era's rules of expiry apply: the one asked for, or that of the release, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.replay.dump.chosen_release import named_release
from schemas.expiration_rules import ExpirationRules, era_of_release, expiration_eras
from schemas.releases import release_key

OLDEST, NEWEST = "pre-2.1", "current"
_SHOWN_BY_EVERY_3_X = "2.3"
"""Without a metadata log, records of this and of all releases up to 3.9 look alike."""

_LATER = "3.2-3.9"


@dataclass(frozen=True)
class ChosenEra:
    """The rules, those of what was written before an upgrade, and a sentence that says so."""

    era: ExpirationRules
    before: ExpirationRules | None
    explanation: str


def chosen_era(
    era_name: str | None, kafka_version: str | None, manifest: Mapping[str, Any]
) -> ChosenEra:
    """Return the rules that apply.

    Args:
        era_name: A name of an era, or None to go by the release.
        kafka_version: `--kafka-version`, or None.
        manifest: Of the dump: it says at least which release wrote it.
    """
    eras = expiration_eras()
    if era_name is not None:
        return ChosenEra(eras[era_name], None, f"rules: {era_name}, as asked for")
    before = eras[OLDEST]
    named = named_release(manifest)
    if kafka_version is not None:
        era = era_of_release(kafka_version)
        why = f"of Kafka {kafka_version}, as asked for"
    elif named is not None:
        era = era_of_release(named)
        why = f"of Kafka {named}, as it was replayed"
    else:
        at_least = (manifest.get("kafka_version") or {}).get("at_least")
        if at_least is None:
            era, why = eras[NEWEST], "the newest: nothing shows which release wrote this"
        else:
            era = era_of_release(at_least)
            why = f"by release: written by Kafka {at_least} or newer"
            if release_key(at_least)[:2] == release_key(_SHOWN_BY_EVERY_3_X):
                era = eras[_LATER]
                why += ", and nothing tells 2.3 from the releases up to 3.9"
    sentence = f"rules: {era.name} ({why}); --rules or --kafka-version choose others"
    return ChosenEra(era, None if era.per_offset else before, sentence)
