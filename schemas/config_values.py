"""Which settings' values may be kept, read from `rules/config_values.json`."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

_FILE = "rules/config_values.json"
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
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    return found
