"""Names of Kafka's settings, read from `settings/`: which are known, and which tell nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

# Which settings' values may be kept, read from `rules/config_values.json`.

_VALUES = "rules/config_values.json"
_DOT = re.escape(".")
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
    patterns = [re.escape(each).replace(r"\*", ".*") for each in _document()[resource_type]]
    return "^(" + "|".join(patterns) + ")$"


@cache
def sensitive_settings() -> str:
    """Return a regular expression of the settings whose values are never kept, whatever the case.

    Names are divided by dots, dashes and underscores: `auth.token` ends with `token`, and
    `brokentoken` does not.
    """
    document = _document()
    names = "|".join(map(re.escape, (*document["sensitive"], *document["sensitive_endings"])))
    return f"(?i)(^|[._-])({names.replace(_DOT, '[._-]')})$"


def _document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        files(__package__).joinpath(_VALUES).read_text(encoding="utf-8")
    )
    return found


BROKER, GROUP = "broker", "group"
_NAMES = "settings/broker_settings.json"
_PUBLIC = "settings/public_settings.json"


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


@cache
def public_settings() -> frozenset[str]:
    """Return the settings that Kafka itself has, by their whole names.

    What a pattern alone knows may be of a plugin, or have the name of a listener in it.
    """
    whole = (each for each in _names()[BROKER] + _names()[GROUP] if "*" not in each)
    own = (name for of, names in _lists(_PUBLIC).items() if of != "about" for name in names)
    return frozenset((*whole, *own))


@cache
def _names() -> dict[str, list[str]]:
    return _lists(_NAMES)


def _lists(file: str) -> dict[str, list[str]]:
    document: dict[str, list[str]] = json.loads(
        files(__package__).joinpath(file).read_text(encoding="utf-8")
    )
    return document
