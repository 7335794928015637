"""Which of the names that are known somebody meant, who wrote another."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
