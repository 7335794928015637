"""Why two states differ, in words, read from `rules/diff.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def diff_causes() -> Mapping[str, str]:
    """Return the words of the codes that `cause` has in the tables of changes."""
    text = files(__package__).joinpath("rules/diff.json").read_text(encoding="utf-8")
    causes: Mapping[str, str] = json.loads(text)["causes"]
    return causes
