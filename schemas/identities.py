"""Which columns and fields name people, machines and data, read from `identities.json`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from schemas.names import INTERNAL_TOPICS
from schemas.reading import Explained, load


def kind_of(field: str) -> str | None:
    """Return what a column or field of this name identifies: a kind, or None where nothing."""
    return _kinds().get(field)


def kinds() -> tuple[str, ...]:
    """Return all kinds; of two that know a name the first gives the pseudonym in text."""
    return tuple(_document().kinds)


def text_of(field: str) -> str:
    """Return what a column of text holds that identifies nothing.

    Returns:
        `words`, `sentences`, `objects` or `commands`.

    Raises:
        LookupError: Nothing is declared of it: it may hold names.
    """
    try:
        return _texts()[field]
    except KeyError as error:
        raise LookupError(f"identities.json does not say what text {field} holds") from error


def kind_of_fields(field: str) -> str | None:
    """Return what the fields of a document are named after; None where the names are our own."""
    return _document().keyed.fields.get(field)


def is_said(kind: str) -> bool:
    """Return whether sentences of groupscope have names of a kind."""
    return kind not in _document().unsaid.kinds


def is_withheld(field: str) -> bool:
    """Return whether a field of a manifest names places on the machine where the tool ran."""
    return field in _document().withheld.fields


def is_public(name: str) -> bool:
    """Return whether a name is Kafka's own, and tells nothing."""
    return name in INTERNAL_TOPICS or not name


@cache
def _kinds() -> Mapping[str, str]:
    return {field: kind for kind, named in _document().kinds.items() for field in named}


@cache
def _texts() -> Mapping[str, str]:
    return {
        field: what
        for what, fields in _document().text.items()
        if not isinstance(fields, str)
        for field in fields
    }


class _Keyed(Explained, frozen=True):
    fields: Mapping[str, str]


class _Unsaid(Explained, frozen=True):
    kinds: frozenset[str]


class _Withheld(Explained, frozen=True):
    fields: frozenset[str]


class _Identities(Explained, frozen=True):
    kinds: Mapping[str, tuple[str, ...]]
    text: Mapping[str, str | tuple[str, ...]]
    keyed: _Keyed
    unsaid: _Unsaid
    withheld: _Withheld


@cache
def _document() -> _Identities:
    return load(_Identities, "identities.json")
