"""Kafka releases, and what in a dump shows that at least a certain one wrote it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_FILE = "rules/kafka_versions.json"
OLDEST = "0.9"
"""The oldest release whose rules are known."""


def release_key(release: str) -> tuple[int, ...]:
    """Return what orders releases: "3.9" before "4.0", "0.10.1" after "0.9"."""
    return tuple(int(part) for part in release.split("."))


def is_line(release: str) -> bool:
    """Whether a release is named without its patch ("4.1", "0.10.2"): it may be any of its line."""
    parts = release_key(release)
    return len(parts) <= _parts_of_a_line(parts)


def line_of(release: str) -> tuple[int, ...]:
    """Return the line of a release: (4, 1) of "4.1.2", (0, 10, 2) of "0.10.2.1"."""
    parts = release_key(release)
    return parts[: _parts_of_a_line(parts)]


def patch_before(release: str) -> str:
    """Return the patch release before one that is not the first of its line: 4.1.1 of "4.1.2"."""
    *line, patch = release_key(release)
    return ".".join(str(part) for part in (*line, patch - 1))


def _parts_of_a_line(parts: tuple[int, ...]) -> int:
    return 3 if parts[:1] == (0,) else 2


@dataclass(frozen=True)
class RecordEvidence:
    """Records of a table, in a version or layout where given, which no older release writes."""

    topic: str
    table: str
    at_least: str
    version: int | None = None
    layout: str | None = None

    def fits(self, topic: str, table: str, version: int, layout: str | None) -> bool:
        """Whether such records are this evidence; a tombstone (version -1) never is."""
        return (
            version >= 0
            and (topic, table) == (self.topic, self.table)
            and self.version in (None, version)
            and self.layout in (None, layout)
        )


@dataclass(frozen=True)
class FieldEvidence:
    """A tagged field of a value that no older release sets; one that is not set is not stored."""

    topic: str
    table: str
    column: str
    unset: int
    at_least: str


@dataclass(frozen=True)
class MetadataVersion:
    """The first level of the feature metadata.version that a release introduced.

    The release before it knows the level already, and writes it where unstable feature versions
    are enabled: a level shows that older release only.
    """

    first_level: int
    of: str
    at_least: str


@cache
def record_evidence() -> tuple[RecordEvidence, ...]:
    """Return what records tell."""
    return tuple(RecordEvidence(**each) for each in _document()["records"])


@cache
def field_evidence() -> tuple[FieldEvidence, ...]:
    """Return what fields of values tell, where they are set."""
    return tuple(FieldEvidence(**each) for each in _document()["fields"])


@cache
def metadata_versions() -> tuple[MetadataVersion, ...]:
    """Return what the feature metadata.version tells, lowest level first."""
    return tuple(MetadataVersion(**each) for each in _document()["metadata_versions"])


def _document() -> dict[str, list[dict[str, Any]]]:
    document: dict[str, list[dict[str, Any]]] = json.loads(
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    return document
