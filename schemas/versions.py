"""Ranges of schema versions, in the notation that Kafka's own documentation uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.errors import SchemaError

LAST_VERSION = 32767
"""Versions are int16 on the wire, so this is what an open range ("3+") ends at."""

_NOTATION = re.compile(r"(?P<first>\d+)(?:(?P<open>\+)|-(?P<last>\d+))?")


@dataclass(frozen=True)
class VersionRange:
    """Versions first to last, both included; last below first when no version is meant."""

    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuse what is neither a range of int16 versions nor the empty range.

        Raises:
            SchemaError: The bounds are out of range or the wrong way round.
        """
        if (self.first, self.last) == (0, -1):
            return
        if not 0 <= self.first <= self.last <= LAST_VERSION:
            raise SchemaError(f"versions {self.first} to {self.last} are not a range")

    def __contains__(self, version: int) -> bool:
        """Whether the version lies in the range."""
        return self.first <= version <= self.last

    def __bool__(self) -> bool:
        """Whether any version lies in the range."""
        return self.first <= self.last

    def __str__(self) -> str:
        """Return the range as it is written in a schema file."""
        if not self:
            return "none"
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}+" if self.last == LAST_VERSION else f"{self.first}-{self.last}"

    def within(self, other: VersionRange) -> bool:
        """Whether the other range holds every version of this one."""
        return not self or (other.first <= self.first and self.last <= other.last)

    def overlap(self, other: VersionRange) -> VersionRange:
        """Return the versions that both ranges hold."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return VersionRange(first, last) if first <= last else NO_VERSIONS

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Read "3+" (3 and later), "1" (1 alone), "0-4" or "none".

        Raises:
            SchemaError: The text is none of these.
        """
        if text == "none":
            return NO_VERSIONS
        match = _NOTATION.fullmatch(text)
        if match is None:
            raise SchemaError(f'versions "{text}": write "3+", "1", "0-4" or "none"')
        first = int(match["first"])
        if match["open"]:
            return cls(first, LAST_VERSION)
        return cls(first, int(match["last"] or first))


NO_VERSIONS = VersionRange(0, -1)
ALL_VERSIONS = VersionRange(0, LAST_VERSION)
