"""Known names in text, each replaced by what stands for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_WORD: Final = re.compile(r"[^\s'\"`,;()\[\]{}=:@|<>]+")
_EDGE: Final = re.compile(r"(?<=[0-9A-Za-z])(?![0-9A-Za-z])|(?<![0-9A-Za-z])(?=[0-9A-Za-z])")


class NamesInText:
    """Replaces names.

    A name counts where it stands alone or between signs: `parcels` is one in `parcels-3`, and not
    in `parcelstore`. A name that has blanks, quotes or brackets in it counts wherever it is.

    Args:
        names: By name what stands for it.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._words = {name: to for name, to in names.items() if _WORD.fullmatch(name)}
        rest = [name for name in names if name not in self._words]
        self._others = [(name, names[name]) for name in sorted(rest, key=len, reverse=True)]

    def replaced(self, text: str) -> str:
        """Return a text without the names."""
        for name, to in self._others:
            if name in text:
                text = text.replace(name, to)
        return _WORD.sub(lambda found: self._word(found[0]), text)

    def _word(self, word: str) -> str:
        if word in self._words:
            return self._words[word]
        edges = [0, *(each.start() for each in _EDGE.finditer(word)), len(word)]
        return "".join(self._parts(word, sorted(set(edges))))

    def _parts(self, word: str, edges: list[int]) -> Iterator[str]:
        """Yield what becomes of a word, the longest name from each edge on first."""
        at = 0
        while at < len(edges) - 1:
            ends = range(len(edges) - 1, at, -1)
            end = next((n for n in ends if word[edges[at] : edges[n]] in self._words), None)
            part = word[edges[at] : edges[at + 1 if end is None else end]]
            yield self._words.get(part, part)
            at = at + 1 if end is None else end
