"""What a dump may not tell, by code, read from `gaps/`: a file for each family of codes.

A code has what it means (`about`), what can be done (`advice`), its `words`
(a `Template`), the `place` it names (of `PLACE`) and its `parameters` by type. A `?` behind
a place or a type says that it may lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Final

from schemas.names import SNAKE_CASE, kinds
from schemas.reading import Explained, SchemaError, documents, read_as

# The wording of a gap: a template that is filled with its place and its parameters.
#
# `{name}` is filled in as it is. `{name:# offset|# offsets}` is the first form for one and the
# second for any other number, with the number in place of `#`; a count is only ever written so.
# What stands in `[...]` is left out where a name in it has no value.

NUMBER: Final = "#"
"""Stands for the number in the forms of a count."""
_PART: Final = re.compile(r"\{([a-z][a-z0-9_]*)(?::([^{}|\[\]]*)\|([^{}|\[\]]*))?\}|\[|\]|[{}]")
_SUBJECTS: Final = ("{group_id}: ", "[{group_id}: ]")


@dataclass(frozen=True)
class Filled:
    """A place in a template for a value.

    Attributes:
        name: Of the value.
        forms: Of a count: what is written of one, and of any other number; else None.
    """

    name: str
    forms: tuple[str, str] | None = None


Piece = str | Filled


@dataclass(frozen=True)
class Clause:
    """A run of text and values; one that is optional is left out where a value lacks."""

    pieces: tuple[Piece, ...]
    is_optional: bool

    @property
    def values(self) -> tuple[Filled, ...]:
        """The places for values in it."""
        return tuple(each for each in self.pieces if isinstance(each, Filled))


@dataclass(frozen=True)
class Template:
    """The words of a gap, as they are written in its file.

    Attributes:
        text: What is written there.
    """

    text: str

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The template in order.

        Raises:
            SchemaError: A bracket or a brace has no other.
        """
        return tuple(_clauses(self.text))

    @property
    def values(self) -> tuple[Filled, ...]:
        """All places for values."""
        return tuple(value for each in self.clauses for value in each.values)

    @property
    def without_group(self) -> Template:
        """The same without the group that it is about, where it begins with that one."""
        for subject in _SUBJECTS:
            if self.text.startswith(subject):
                return Template(self.text.removeprefix(subject))
        return self

    def filled(self, values: Mapping[str, str | int | None]) -> str:
        """Return the words.

        Args:
            values: By name: of a count the number, of all others their text; None where there is
                none.

        Raises:
            KeyError: A value lacks that is not optional.
        """
        return "".join(_written(each, values) for each in self.clauses)


def _written(clause: Clause, values: Mapping[str, str | int | None]) -> str:
    if clause.is_optional and any(values.get(each.name) is None for each in clause.values):
        return ""
    return "".join(
        each if isinstance(each, str) else written_value(each, values[each.name])
        for each in clause.pieces
    )


def written_value(place: Filled, value: str | int | None) -> str:
    """Return what stands for a value in a template.

    Raises:
        KeyError: There is no value.
    """
    if value is None:
        raise KeyError(place.name)
    if place.forms is None:
        return str(value)
    return of_count(place.forms, value, f"{value:,}")


def of_count(forms: tuple[str, str], count: object, number: str) -> str:
    """Return the form that is written of one, or of any other count, with its number."""
    one, many = forms
    return (one if count == 1 else many).replace(NUMBER, number)


def _clauses(text: str) -> Iterator[Clause]:
    pieces: list[Piece] = []
    is_optional, end = False, 0
    for part in _PART.finditer(text):
        pieces += [text[end : part.start()]] if part.start() > end else []
        end = part.end()
        if part[0] in "{}" or part[0] == ("[" if is_optional else "]"):
            raise SchemaError(f'"{part[0]}" at {part.start()} has no other', field="words")
        if part[0] in "[]":
            if pieces:
                yield Clause(tuple(pieces), is_optional)
            pieces, is_optional = [], part[0] == "["
        else:
            pieces.append(Filled(part[1], None if part[2] is None else (part[2], part[3])))
    if is_optional:
        raise SchemaError('"[" is never closed', field="words")
    pieces += [text[end:]] if end < len(text) else []
    if pieces:
        yield Clause(tuple(pieces), is_optional=False)


PLACE: Final = (
    *("topic", "partition", "from_offset", "to_offset"),
    *("from_time", "to_time", "group_id"),
)
"""Where something cannot be told: records from one offset to before another, or times likewise."""

COUNT, NUMBERS, GAP, PATTERN, TEXT = "count", "numbers", "gap", "pattern", "text"
PLAIN_TYPES: Final = {
    COUNT: "how many of something",
    "number": "a number that names something: an epoch, a partition",
    NUMBERS: "several such",
    TEXT: "words of groupscope or of the file system, which may have names in them",
    "texts": "several such",
    "word": "words that name nobody: of groupscope, an option, a time",
    GAP: "another gap, which is the reason",
}
"""Types of parameters besides names, whose types are the kinds of `schemas.names` (`group`),
or several of a kind (`groups`)."""
FOLDER: Final = "gaps"


@dataclass(frozen=True)
class ParameterType:
    """What a parameter holds.

    Attributes:
        name: One of `PLAIN_TYPES`, or a kind of names.
        is_list: It holds several.
        is_optional: It may lack.
    """

    name: str
    is_list: bool
    is_optional: bool

    @property
    def identifies(self) -> str | None:
        """The kind of names that it holds; None where it holds none."""
        return self.name if self.name in kinds() else None


@dataclass(frozen=True)
class GapKind:
    """One thing that a dump may not tell.

    Attributes:
        code: Its name.
        family: The file's name.
        about: What it means, in a sentence.
        advice: What can be done about it, in a sentence.
        template: Its words.
        place: What of `PLACE` it names; true where that may lack.
        parameters: By name what they hold.
    """

    code: str
    family: str
    about: str
    advice: str
    template: Template
    place: Mapping[str, bool]
    parameters: Mapping[str, ParameterType]

    def __post_init__(self) -> None:
        """Refuse a gap whose words and values do not fit.

        Raises:
            SchemaError: They do not.
        """
        if not SNAKE_CASE.fullmatch(self.code):
            raise SchemaError(f'code "{self.code}" is not snake_case')
        for name in self.place:
            if name not in PLACE:
                raise SchemaError(f'"{name}" is no place: there are {", ".join(PLACE)}')
        for name in self.parameters:
            if name in PLACE:
                raise SchemaError(f'parameter "{name}" is called as a place is')
        self._check_words()

    def _check_words(self) -> None:
        used = {each.name for each in self.template.values}
        if unknown := sorted(used - self.place.keys() - self.parameters.keys()):
            raise SchemaError(f"its words name {', '.join(unknown)}, which it does not have")
        if unused := sorted(self.parameters.keys() - used):
            raise SchemaError(f"its words do not name {', '.join(unused)}")
        for clause in self.template.clauses:
            may_lack = {each.name for each in clause.values if self.may_lack(each.name)}
            if clause.is_optional != bool(may_lack):
                named = ", ".join(sorted(may_lack)) or "nothing"
                raise SchemaError(f"[...] is for what may lack, and {named} may lack here")
        for each in self.template.values:
            if (each.name in self.counts) != (each.forms is not None):
                raise SchemaError(f'"{each.name}" has forms for one and many if it is a count')
            if each.forms is not None and NUMBER not in each.forms[1]:
                raise SchemaError(f'"{each.name}" of many has no {NUMBER} for the number')

    @property
    def counts(self) -> frozenset[str]:
        """The parameters that are counts."""
        return frozenset(name for name, each in self.parameters.items() if each.name == COUNT)

    def may_lack(self, name: str) -> bool:
        """Return whether a place or parameter may have no value."""
        of_place = self.place.get(name)
        return self.parameters[name].is_optional if of_place is None else of_place


@cache
def gap_kinds() -> Mapping[str, GapKind]:
    """Return everything that a dump may not tell, by code.

    Raises:
        SchemaError: A file is wrong, or two gaps have one code.
    """
    found: dict[str, GapKind] = {}
    for stem, file, content in documents(FOLDER):
        try:
            kinds_of_file = {each.code: each for each in parse_gaps(content, stem)}
        except SchemaError as error:
            raise error.in_file(file) from None
        if twice := sorted(found.keys() & kinds_of_file):
            raise SchemaError(f"another family has {', '.join(twice)}", file=file)
        found |= kinds_of_file
    return MappingProxyType(found)


def gap_kind(code: str) -> GapKind:
    """Return what a code means.

    Raises:
        KeyError: There is no such code.
    """
    return gap_kinds()[code]


class _Gap(Explained, frozen=True):
    advice: str
    words: str
    place: tuple[str, ...]
    parameters: Mapping[str, str]

    def __post_init__(self) -> None:
        for text in (self.about, self.advice, self.words):
            if not text.strip():
                raise ValueError("a text is empty")


class _Gaps(Explained, frozen=True):
    gaps: Mapping[str, _Gap]


def parse_gaps(content: object, family: str) -> Iterator[GapKind]:
    """Read the gaps of one file.

    Args:
        content: The parsed JSON: `about` and, by code, `gaps`.
        family: The file's name without suffix.

    Raises:
        SchemaError: The document makes no sense.
    """
    for code, each in read_as(_Gaps, content).gaps.items():
        try:
            yield _kind(code, family, each)
        except SchemaError as error:
            raise error.inside(code) from None


def _kind(code: str, family: str, gap: _Gap) -> GapKind:
    return GapKind(
        code=code,
        family=family,
        about=gap.about,
        advice=gap.advice,
        template=Template(gap.words),
        place=MappingProxyType({name.removesuffix("?"): name.endswith("?") for name in gap.place}),
        parameters=MappingProxyType(
            {name: parameter_type(text) for name, text in gap.parameters.items()}
        ),
    )


def parameter_type(text: str) -> ParameterType:
    """Read a type as a file has it: `count`, `groups`, `text?`.

    Raises:
        SchemaError: There is no such type.
    """
    name = text.removesuffix("?")
    is_optional = name != text
    names = kinds()
    if name in (NUMBERS, "texts", "gaps") or (
        name not in names and name.endswith("s") and name.removesuffix("s") in names
    ):
        return ParameterType(name.removesuffix("s"), is_list=True, is_optional=is_optional)
    if name not in names and name not in PLAIN_TYPES:
        raise SchemaError(f'"{text}" is no type: there are {", ".join((*PLAIN_TYPES, *names))}')
    return ParameterType(name, is_list=False, is_optional=is_optional)
