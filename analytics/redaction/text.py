"""Pseudonyms of names, and text in which known names are replaced by them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from schemas.names import is_public, kinds

# Pseudonyms: the same key and name give the same one, and nobody without the key tells whose.

LEAST_KEY_BYTES: Final = 16
_DIGITS: Final = 12


class Pseudonyms:
    """Pseudonyms under one key, by kind of name.

    Args:
        key: At least `LEAST_KEY_BYTES` bytes that only the owner of the names has.

    Raises:
        ValueError: The key is shorter.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < LEAST_KEY_BYTES:
            raise ValueError(f"a key has at least {LEAST_KEY_BYTES} bytes, and this has {len(key)}")
        self._key = key
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        """Return the pseudonym of a name; Kafka's own names and "" stay as they are."""
        if is_public(name):
            return name
        known = self._known.get((kind, name))
        if known is None:
            text = f"{kind}\0{name}".encode("utf-8", "surrogatepass")
            digest = hmac.new(self._key, text, hashlib.sha256).hexdigest()
            known = self._known[kind, name] = f"{kind}-{digest[:_DIGITS]}"
        return known

    def of_text(self, names: Mapping[str, Iterable[str]]) -> dict[str, str]:
        """Return what stands for each name in text.

        Args:
            names: By kind; of a name of several kinds the first kind counts.
        """
        found: dict[str, str] = {}
        for kind in kinds():
            for name in names.get(kind, ()):
                if not is_public(name):
                    found.setdefault(name, self.of(kind, name))
        return found


# Known names in text, each replaced by what stands for it; text that may hide one is withheld.
#
# A sentence is words of groupscope, numbers, times and names, and nothing marks which is which. A
# name that cannot be taken for anything else is replaced where it stands. Where another may be
# meant, the whole sentence is withheld: a lost sentence does less harm than a name or a wrong
# number.

WITHHELD_TEXT: Final = "(withheld: it may have names in it)"

_WORD: Final = re.compile(r"[^\s'\"`,;()\[\]{}=:@|<>]+")
_RUN: Final = re.compile(r"[^\W_]+")
_EDGE: Final = re.compile(r"(?<=[^\W_])(?![^\W_])|(?<![^\W_])(?=[^\W_])")
_NUMBER: Final = re.compile(r"[\d.,:+TZ-]+|\d+[^\W\d_]{1,4}")
"""Numbers, times, and numbers with a unit."""
_PARTITION: Final = re.compile(r"(.+)-\d+")
_WHOLE: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+\d\d:\d\d)?)?"
    r"|(?<!\d)\d{1,3}(?:,\d{3})+(?!\d)|(?<![\d.])\d+\.\d+(?![\d.])|__[a-z_]+-\d+(?:@\d+)?"
)
"""What is one thing: a time, a number with separators, a record of an internal topic."""
_LEAST_LETTERS: Final = 2
_OPTIONS: Final = ("--group", "--topic", "--exclude-group", "--data-topic", "--transactional-id")


class NamesInText:
    """Replaces names.

    A name counts where it stands alone or between signs: `parcels` is one in `parcels-3`, and not
    in `parcelstore`.

    Args:
        names: By name what stands for it.
        own_words: Words of sentences that are no names, in lower case.
        unsaid: Names that no sentence has: where one can be taken for something else, it is.
    """

    def __init__(
        self,
        names: Mapping[str, str],
        own_words: Collection[str] = frozenset(),
        unsaid: Collection[str] = frozenset(),
    ) -> None:
        self._names = names
        self._own = own_words
        self._clear = {name: to for name, to in names.items() if self._is_clear(name)}
        # A sign at its end may be taken for one beside it, and JSON may write it in another way.
        self._to_check = _Forms(
            name
            for name in self._clear
            if not (name.isascii() and name[0].isalnum() and name[-1].isalnum())
        )
        self._unclear = _Forms(
            name for name in names if name not in self._clear and name not in unsaid
        )

    def replaced(self, text: str) -> str:
        """Return a sentence without the names, or `WITHHELD_TEXT`."""
        if self._is_own_word(text):
            return text
        if self._unclear.are_in(text):
            return WITHHELD_TEXT
        changed = _WORD.sub(lambda word: self._word(word[0]), text)
        return WITHHELD_TEXT if self._to_check.are_in(changed) else changed

    def object(self, text: str) -> str:
        """Return what stands for a name, or for a name and the number of a partition."""
        if text in self._names:
            return self._names[text]
        topic, sign, partition = text.rpartition("-")
        if sign and partition.isdecimal() and topic in self._names:
            return f"{self._names[topic]}-{partition}"
        return self.replaced(text)

    def command(self, text: str) -> str:
        """Return a command whose arguments are no names, quoted anew."""
        try:
            words = shlex.split(text)
        except ValueError:
            return WITHHELD_TEXT
        made = [
            self._argument(word)
            if before in _OPTIONS
            else word
            if word.startswith("--")
            else self.replaced(word)
            for before, word in zip(["", *words], words, strict=False)
        ]
        return WITHHELD_TEXT if WITHHELD_TEXT in made else shlex.join(made)

    def _argument(self, word: str) -> str:
        topic, sign, partitions = word.rpartition(":")
        if word not in self._names and sign and topic in self._names:
            return f"{self._names[topic]}:{partitions}"
        return self.object(word)

    def _is_clear(self, name: str) -> bool:
        """Return whether a name in text can be nothing else."""
        partition = _PARTITION.fullmatch(name)
        return (
            _WORD.fullmatch(name) is not None
            and name.isprintable()
            and "\\" not in name
            and len(name) >= _LEAST_LETTERS
            and (name.startswith("/") or any(each.isalpha() for each in name))
            and _NUMBER.fullmatch(name) is None
            and name.lower() not in self._own
            and not (partition and partition[1] in self._names)
        )

    def _is_own_word(self, text: str) -> bool:
        """A field of one word of ours is no sentence."""
        return text.lower() in self._own or _NUMBER.fullmatch(text) is not None

    def _word(self, word: str) -> str:
        if word in self._clear:
            return self._clear[word]
        if word.lower() in self._own:
            return word
        edges = [0, *(each.start() for each in _EDGE.finditer(word)), len(word)]
        return "".join(self._parts(word, sorted(set(edges))))

    def _parts(self, word: str, edges: list[int]) -> Iterator[str]:
        """Yield what becomes of a word, the longest name from each edge on first."""
        at = 0
        while at < len(edges) - 1:
            ends = range(len(edges) - 1, at, -1)
            end = next((n for n in ends if word[edges[at] : edges[n]] in self._clear), None)
            part = word[edges[at] : edges[at + 1 if end is None else end]]
            yield self._clear.get(part, part)
            at = at + 1 if end is None else end


class _Forms:
    """Names that are looked for in text, as they are and as shells, JSON and Python write them.

    Args:
        names: The names.
    """

    def __init__(self, names: Iterator[str]) -> None:
        self._by_run: dict[str, list[str]] = defaultdict(list)
        self._without_runs: list[str] = []
        for name in names:
            for form in _forms(name):
                runs = _RUN.findall(form)
                if runs:
                    self._by_run[max(runs, key=len)].append(form)
                else:
                    self._without_runs.append(form)

    def are_in(self, text: str) -> bool:
        """Return whether one of them may stand in a text."""
        whole = [each.span() for each in _WHOLE.finditer(text)]
        forms = [form for run in set(_RUN.findall(text)) for form in self._by_run.get(run, ())]
        return any(_is_in(form, text, whole) for form in (*forms, *self._without_runs))


def _forms(name: str) -> set[str]:
    return {
        name,
        shlex.quote(name).strip("'"),
        json.dumps(name)[1:-1],
        json.dumps(name, ensure_ascii=False)[1:-1],
        repr(name)[1:-1],
    }


def _is_in(form: str, text: str, whole: list[tuple[int, int]]) -> bool:
    """Return whether a form stands alone or between signs, and is no part of a time or a number."""
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        if _ends(text[at - 1 : at], form[:1]) and _ends(text[end : end + 1], form[-1:]):
            inside = any(a <= at and end <= b and (a, b) != (at, end) for a, b in whole)
            if not inside:
                return True
        at = text.find(form, at + 1)
    return False


def _ends(outside: str, edge: str) -> bool:
    """Return whether a name with this at its edge may end where this is beside it."""
    if edge.isalnum() or edge.isspace():
        return not outside.isalnum()
    # A sign at the edge of a name sets it apart by itself.
    return True
