"""The limits of share groups as releases and KIP-932's text have them (`share_limits.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from schemas.releases import release_key

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
