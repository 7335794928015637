"""Long names cut short in the middle, so that they still tell rows apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
SHORTEST = 12
"""So much of a name is always left."""


def shortened(names: pa.ChunkedArray, width: int) -> pa.ChunkedArray:
    """Return texts of at most `width` characters: the middle of a longer one is an ellipsis.

    Names that would look alike keep what is different about them instead of their beginning.
    """
    is_long = pc.greater(pc.utf8_length(names), width)
    if not pc.any(is_long).as_py():
        return names
    long = pc.unique(names.filter(is_long)).to_pylist()
    short = _short_forms(long, width)
    index = pc.index_in(names, value_set=pa.array(long))
    return pc.coalesce(pc.take(pa.array([short[each] for each in long]), index), names)


def _short_forms(names: list[str], width: int) -> dict[str, str]:
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[_middle_cut(name, width)].append(name)
    forms: dict[str, str] = {}
    for form, several in alike.items():
        if len(several) == 1:
            forms[several[0]] = form
        else:
            same = _same_beginning(several)
            forms.update({name: _from(name, same, width) for name in several})
    return forms


def _same_beginning(names: Sequence[str]) -> int:
    """Return how many characters all names begin with."""
    # What the first and the last in order have in common, all between them have.
    first, last = min(names), max(names)
    places = zip(first, last, strict=False)
    return next((place for place, (a, b) in enumerate(places) if a != b), len(first))


def _middle_cut(name: str, width: int) -> str:
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}{ELLIPSIS}{name[len(name) - tail :]}"


def _from(name: str, same: int, width: int) -> str:
    """Return the beginning of a name, and how it goes on from where others differ."""
    head = min(same, width // 4)
    rest = name[same:]
    room = width - head - 1
    if len(rest) > room:
        rest = rest[: room - 1] + ELLIPSIS
    return f"{name[:head]}{ELLIPSIS}{rest}"
