"""Names: Kafka's internal topics, how its names become ours, and which one somebody meant.

Kafka's settings: which names are known (`settings/`), and whose values may be kept.

Which columns and fields name people, machines and data, read from `identities.json`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from schemas.reading import Explained, SchemaError, load

# Kafka's internal topics by name; everything else takes the names from here.

CONSUMER_OFFSETS: Final = "__consumer_offsets"
SHARE_GROUP_STATE: Final = "__share_group_state"
TRANSACTION_STATE: Final = "__transaction_state"
CLUSTER_METADATA: Final = "__cluster_metadata"

INTERNAL_TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, CLUSTER_METADATA)
"""The internal topics whose records have schemas; the last is the metadata log."""

COORDINATOR_TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE)
"""The topics that group, share and transaction coordinators write."""

COMPACTED_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
"""The topics whose cleanup policy is compact: gaps below the first dirty offset are normal."""


# Which of the names that are known somebody meant, who wrote another.


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that is most like another; None where none is like it."""
    return next(iter(get_close_matches(name, list(names), 1)), None)


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str) -> str:
    """Return a hint for a name that is not known.

    Args:
        name: What somebody wrote.
        candidates: The names there are.
        otherwise: What stands before them all where none is like it ("there are").
    """
    names = list(candidates)
    near = nearest_name(name, names)
    return f"did you mean {near!r}?" if near else f"{otherwise} {', '.join(names)}"


LOWER_CAMEL_CASE = re.compile(r"[a-z][a-zA-Z0-9]*")
SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return the column or table name of a Kafka name: "groupId" gives "group_id"."""
    return _WORD_START.sub("_", name).lower()


def refuse_duplicates(what: str, values: Iterable[object]) -> None:
    """Check that no value comes twice.

    Raises:
        SchemaError: One does; it names them all.
    """
    repeated = [str(value) for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise SchemaError(f"{what} twice: {', '.join(repeated)}")


BROKER, GROUP = "broker", "group"
_DOT: Final = re.escape(".")
WITHHELD = "(withheld)"
"""What stands for the value of a sensitive setting: null would mean that it was removed."""
RESOURCE_TYPES = ("topic", "broker", "group")


@cache
def harmless_settings(resource_type: str) -> str:
    """Return a regular expression of the settings whose values are kept.

    It is anchored, and of the kind that Python and Java read alike.

    Args:
        resource_type: topic, broker or group.

    Raises:
        KeyError: There is no such type of resource.
    """
    values = _values()
    kept = {"topic": values.topic, "broker": values.broker, "group": values.group}
    patterns = [re.escape(each).replace(r"\*", ".*") for each in kept[resource_type]]
    return "^(" + "|".join(patterns) + ")$"


@cache
def sensitive_settings() -> str:
    """Return a regular expression of the settings whose values are never kept, whatever the case.

    Names are divided by dots, dashes and underscores: `auth.token` ends with `token`, and
    `brokentoken` does not.
    """
    values = _values()
    names = "|".join(map(re.escape, (*values.sensitive, *values.sensitive_endings)))
    return f"(?i)(^|[._-])({names.replace(_DOT, '[._-]')})$"


class _Values(Explained, frozen=True):
    sensitive: tuple[str, ...]
    sensitive_endings: tuple[str, ...]
    topic: tuple[str, ...]
    broker: tuple[str, ...]
    group: tuple[str, ...]


@cache
def _values() -> _Values:
    return load(_Values, "rules/config_values.json")


def is_setting(name: str, of: str = BROKER) -> bool:
    """Return whether Kafka knows a setting.

    Args:
        name: In Kafka's own spelling.
        of: `BROKER`, or `GROUP` for what can be set for a single group.
    """
    return any(fnmatchcase(name, each) for each in _names()[of])


def nearest_setting(name: str, of: str = BROKER, also: Iterable[str] = ()) -> str | None:
    """Return the known name that is most like an unknown one; None where none is like it.

    Args:
        name: The unknown name.
        of: `BROKER` or `GROUP`.
        also: Other names that would do in its place.
    """
    whole = [each for each in _names()[of] if not each.endswith("*")]
    return next(iter(get_close_matches(name, [*whole, *also], n=1, cutoff=0.6)), None)


class _Public(Explained, frozen=True):
    topic: tuple[str, ...]
    broker: tuple[str, ...]
    group: tuple[str, ...]
    client_metrics: tuple[str, ...]


@cache
def public_settings() -> frozenset[str]:
    """Return the settings that Kafka itself has, by their whole names.

    What a pattern alone knows may be of a plugin, or have the name of a listener in it.
    """
    known = (each for each in (*_names()[BROKER], *_names()[GROUP]) if "*" not in each)
    own = load(_Public, "settings/public_settings.json")
    return frozenset((*known, *own.topic, *own.broker, *own.group, *own.client_metrics))


class _Names(Explained, frozen=True):
    broker: tuple[str, ...]
    group: tuple[str, ...]


@cache
def _names() -> Mapping[str, tuple[str, ...]]:
    names = load(_Names, "settings/broker_settings.json")
    return {BROKER: names.broker, GROUP: names.group}


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
