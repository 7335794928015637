"""Which settings' values may be kept, read from `rules/config_values.json`."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

_FILE = "rules/config_values.json"
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
    document: dict[str, Any] = json.loads(
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    patterns = [re.escape(each).replace(r"\*", ".*") for each in document[resource_type]]
    return "^(" + "|".join(patterns) + ")$"
