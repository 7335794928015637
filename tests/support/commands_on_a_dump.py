"""What commands that are written for people mean on a bundled dump, and whether they are run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

_DECLARED: Final = Path(__file__).parents[1] / "cases" / "commands" / "commands.json"
_WRITES: Final = ("--out", "--output", "--metrics")
_PLACEHOLDER: Final = re.compile(r"\.\.\.$|^[A-Z_]+$|/path/|[${]")
_OPTIONAL: Final = re.compile(r"\[([^]\[]*)\]")


@cache
def declared() -> dict[str, Any]:
    """Return what `tests/cases/commands/commands.json` says."""
    document: dict[str, Any] = json.loads(_DECLARED.read_text("utf-8"))
    return document


def why_not_run(command: str) -> str | None:
    """Return why a command is not run; None where it is."""
    why: str | None = _of_pattern(declared()["not_run"], command)
    return why


def ends_with(command: str) -> int:
    """Return the exit code that a command is to end with."""
    code: int | None = _of_pattern(declared()["ends_with"], command)
    return 0 if code is None else code


def takes_long(command: str) -> bool:
    """Return whether a command is for the long tests: it starts Spark, or asks everything."""
    return any(fnmatchcase(command, each) for each in declared()["takes_long"])


def _of_pattern(patterns: Mapping[str, Any], command: str) -> Any:
    return next((value for each, value in patterns.items() if fnmatchcase(command, each)), None)


def meant(command: str) -> str:
    """Return what a command means: its words, with names in braces for dump, folders and files.

    What is in brackets is taken, too.
    """
    instead = declared()["runs"].get(command)
    words = shlex.split(instead or _OPTIONAL.sub(r"\1", command), comments=True)
    if instead is None:
        words = [_word(words, at) for at in range(len(words))]
    return shlex.join(words)


def filled(meaning: str, places: Mapping[str, Path]) -> list[str]:
    """Return the words of what `meant` returns, with paths for the names in braces.

    Raises:
        AssertionError: A word stands for something that is declared nowhere.
    """
    words = shlex.split(meaning)
    for name, path in places.items():
        words = [each.replace(f"{{{name}}}", str(path)) for each in words]
    unknown = [each for each in words if _PLACEHOLDER.search(each)]
    assert not unknown, f"{meaning}: what {unknown} stand for is not declared in {_DECLARED.name}"
    return words


def _word(words: list[str], at: int) -> str:
    if at and words[at - 1] in _WRITES:
        return "{out}"
    known: Mapping[str, str] = declared()["words"]
    return known.get(words[at], words[at])
