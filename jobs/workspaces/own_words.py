"""The words of groupscope's own sentences, as its texts have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_PACKAGES: Final = ("schemas", "analytics", "reports", "jobs")
_TEXT: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_WORD: Final = re.compile(r"[\w.-]*\w")
_NUMBERED: Final = re.compile(r"[^\W\d_].*[-_.]\d+$")
_RUN: Final = re.compile(r"[^\W_]+")


@cache
def own_words() -> frozenset[str]:
    """Return all words in texts of the packages, in lower case: a name may be one of them."""
    said = {
        text
        for package in _PACKAGES
        for source in _sources(files(package))
        for text in _TEXT.findall(source.read_text(encoding="utf-8"))
    }
    words = {
        word.lower() for text in said for words in (_WORD, _RUN) for word in words.findall(text)
    }
    # Examples have names with numbers in them, `broker-1`, and sentences have not.
    return frozenset(word for word in words if _NUMBERED.search(word) is None)


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _sources(each)
        elif each.name.endswith((".py", ".json")):
            yield each
