"""The verdicts of a timeline and their words, read from `rules/timeline.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

SINCE: Final = "{since}"
"""In the words of a verdict, where its time stands."""


@dataclass(frozen=True)
class TimelineVerdict:
    """What may have happened to an offset.

    Attributes:
        words: What people read; `SINCE` in them is the time of the column `since`.
        severity: critical or warning; info where nothing is wrong.
        about: What it means.
    """

    words: str
    severity: str
    about: str

    @property
    def is_harmless(self) -> bool:
        """Whether nothing is wrong, and nothing may be."""
        return self.severity == "info"


@cache
def timeline_verdicts() -> Mapping[str, TimelineVerdict]:
    """Return the verdicts of `offset_verdicts` by their codes, the worst first."""
    return {code: TimelineVerdict(**each) for code, each in _document()["verdicts"].items()}


def harmless_verdicts() -> frozenset[str]:
    """Return the codes of verdicts by which nothing is wrong."""
    return frozenset(code for code, each in timeline_verdicts().items() if each.is_harmless)


@cache
def _document() -> dict[str, Any]:
    text = files(__package__).joinpath("rules/timeline.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
