"""Which columns and fields name people, machines and data, read from `identities.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from schemas import INTERNAL_TOPICS


def kind_of(field: str) -> str | None:
    """Return what a column or field of this name identifies: a kind, or None where nothing."""
    return _kinds().get(field)


def kinds() -> tuple[str, ...]:
    """Return all kinds; of two that know a name the first gives the pseudonym in text."""
    return tuple(_document()["kinds"])


def is_withheld(field: str) -> bool:
    """Return whether a field of a manifest names places on the machine where the tool ran."""
    return field in _document()["withheld"]["fields"]


def is_public(name: str) -> bool:
    """Return whether a name is Kafka's own, and tells nothing."""
    return name in INTERNAL_TOPICS or not name


@cache
def _kinds() -> Mapping[str, str]:
    return {field: kind for kind, named in _document()["kinds"].items() for field in named}


@cache
def _document() -> dict[str, Any]:
    text = files(__package__).joinpath("identities.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
