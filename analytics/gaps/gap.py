"""A gap: one thing that a dump does not tell, as a row; its words are data (`schemas/gaps/`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.contracts import table_of
from analytics.dump.inspection.limitations import ranges
from analytics.epoch_times import iso_time, milliseconds_of
from schemas.gaps import (
    COUNT,
    NUMBER,
    PATTERN,
    PLACE,
    TEXT,
    Filled,
    GapKind,
    ParameterType,
    gap_kind,
)

if TYPE_CHECKING:
    import pyarrow as pa

TABLE: Final = "gaps"
PASSED_OVER: Final = "offsets_passed_over"
_TIMES: Final = {"from_time": "from_timestamp", "to_time": "to_timestamp"}
"""Columns of the table that are called otherwise."""
_INTEGERS: Final = (COUNT, "number")
_BETWEEN: Final = "; "


@dataclass(frozen=True)
class Gap:
    """One thing that cannot be told.

    Attributes:
        code: What (`schemas.gaps`).
        topic: An internal topic, or one that offsets are of; None where it is about none.
        partition: Of the topic.
        from_offset: The first offset of records that are missing or uncertain.
        to_offset: The offset after the last of them; None where nobody knows it.
        from_time: The first instant that is uncertain.
        to_time: The instant after the last of them.
        group_id: The group that it is about; None where it may be about any.
        parameters: What its words have besides, by name, as its kind declares them.
    """

    code: str
    topic: str | None = None
    partition: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    from_time: datetime | None = None
    to_time: datetime | None = None
    group_id: str | None = None
    parameters: Mapping[str, Value] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse what the kind does not declare.

        Raises:
            KeyError: There is no such code.
            TypeError: A place or parameter lacks, is none of the kind's, or is of another type.
        """
        kind = self.kind
        for name in PLACE:
            is_given = getattr(self, name) is not None
            if name not in kind.place and is_given:
                raise TypeError(f"{self.code} has no {name}")
            if name in kind.place and not is_given and not kind.place[name]:
                raise TypeError(f"{self.code} lacks its {name}")
        for name, value in self.parameters.items():
            if name not in kind.parameters:
                raise TypeError(f"{self.code} has no parameter {name}")
            _check(self.code, name, kind.parameters[name], value)
        for name, declared in kind.parameters.items():
            if not declared.is_optional and self.parameters.get(name) is None:
                raise TypeError(f"{self.code} lacks its parameter {name}")

    @property
    def kind(self) -> GapKind:
        """What its code means."""
        return gap_kind(self.code)

    @cached_property
    def words(self) -> str:
        """What cannot be told and why, in a clause."""
        return self.kind.template.filled(self._texts)

    @property
    def reason(self) -> str:
        """The same without the group, for a row that names it."""
        return self.kind.template.without_group.filled(self._texts)

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield the kind (`schemas.names`) and the name of all that is named in it."""
        yield from (
            (kind, name)
            for kind, name in (("topic", self.topic), ("group", self.group_id))
            if name is not None
        )
        for name, value in self.parameters.items():
            declared = self.kind.parameters[name]
            for each in _items(declared, value):
                if isinstance(each, Gap):
                    yield from each.names()
                elif declared.identifies is not None:
                    yield declared.identifies, each

    def renamed(self, name: Callable[[str, str], str], text: Callable[[str], str]) -> Gap:
        """Return the same with other names.

        Args:
            name: Takes a kind and a name, and returns the other one.
            text: Takes words that may have names in them.
        """

        def other(declared: ParameterType, value: Any) -> Any:  # noqa: ANN401 - as checked
            if isinstance(value, Gap):
                return value.renamed(name, text)
            if declared.identifies is not None:
                return name(declared.identifies, value)
            return text(value) if declared.name == TEXT else value

        parameters: dict[str, Value] = {}
        for each, value in self.parameters.items():
            declared = self.kind.parameters[each]
            items = tuple(other(declared, item) for item in _items(declared, value))
            parameters[each] = items if declared.is_list else next(iter(items), None)
        return replace(
            self,
            topic=None if self.topic is None else name("topic", self.topic),
            group_id=None if self.group_id is None else name("group", self.group_id),
            parameters=parameters,
        )

    @property
    def parameters_as_json(self) -> str:
        """Its parameters as the table `gaps` has them."""
        return json.dumps(_parameters(self), ensure_ascii=False)

    @property
    def place(self) -> dict[str, Any]:
        """Where it is, by the names of `PLACE`; null where it is about none."""
        return {name: getattr(self, name) for name in PLACE}

    @property
    def _texts(self) -> dict[str, str | int | None]:
        texts: dict[str, str | int | None] = {
            name: iso_time(milliseconds_of(each)) if isinstance(each, datetime) else each
            for name, each in self.place.items()
        }
        for name, value in self.parameters.items():
            texts[name] = _text(self.kind.parameters[name], value)
        return texts


Value = str | int | Gap | Sequence[str] | Sequence[int] | Sequence[Gap] | None
"""What a parameter may hold."""


def gap(code: str, **values: Any) -> Gap:  # noqa: ANN401 - each is checked against its type
    """Return a gap of places and parameters by their names.

    Raises:
        KeyError: There is no such code.
        TypeError: As `Gap`.
    """
    place = {name: each for name, each in values.items() if name in PLACE}
    return Gap(code, **place, parameters={k: v for k, v in values.items() if k not in PLACE})


def check_gaps(gaps: Iterable[object]) -> None:
    """Check that what cannot be told are gaps: a sentence has no code that anything could ask for.

    Raises:
        TypeError: One is something else.
    """
    for each in gaps:
        if not isinstance(each, Gap):
            raise TypeError(f"what cannot be told is a Gap, and this is none: {each!r}")


def words_of(gaps: Iterable[Gap]) -> tuple[str, ...]:
    """Return what gaps say, each once."""
    return tuple(dict.fromkeys(each.words for each in gaps))


def joined(gaps: Iterable[Gap]) -> str | None:
    """Return what gaps say as one text; None where there is none."""
    return _BETWEEN.join(words_of(gaps)) or None


def joined_reasons(gaps: Iterable[Gap]) -> str | None:
    """Return the same without the group that they are about."""
    return _BETWEEN.join(dict.fromkeys(each.reason for each in gaps)) or None


@dataclass(frozen=True)
class GroupGaps:
    """Why something of a group cannot be told; what has no gap is known whole.

    Attributes:
        offsets: Why its committed or pending offsets may not be all, or not the last ones.
        membership: Why its state, members and assignments may not be the last ones.
        history: Why its history has gaps.
    """

    offsets: tuple[Gap, ...] = ()
    membership: tuple[Gap, ...] = ()
    history: tuple[Gap, ...] = ()

    @property
    def every(self) -> tuple[Gap, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.offsets, *self.membership, *self.history)))


def words_expression(code: str, **values: pl.Expr) -> pl.Expr:
    """Return the words of a gap for many rows: null where a value that its words need is.

    Args:
        code: What cannot be told.
        **values: By name of a place or parameter its text, of a count the number.

    Raises:
        KeyError: There is no such code, or a value lacks that may not.
    """
    template, parts = gap_kind(code).template, []
    for clause in template.clauses:
        if clause.is_optional and any(each.name not in values for each in clause.values):
            continue
        written = pl.concat_str(
            *(
                pl.lit(each) if isinstance(each, str) else _written(each, values[each.name])
                for each in clause.pieces
            )
        )
        parts.append(written.fill_null("") if clause.is_optional else written)
    return pl.concat_str(*parts)


def _written(place: Filled, value: pl.Expr) -> pl.Expr:
    if place.forms is None:
        return value.cast(pl.String)
    digits = value.cast(pl.String).str.reverse().str.replace_all(r"(\d{3})", "$1,")
    number = digits.str.strip_chars_end(",").str.reverse()
    one, many = (_numbered(form, number) for form in place.forms)
    return pl.when(value == 1).then(one).otherwise(many)


def _numbered(form: str, number: pl.Expr) -> pl.Expr:
    first, *others = (pl.lit(each) for each in form.split(NUMBER))
    return pl.concat_str(first, *(part for each in others for part in (number, each)))


def gap_rows(gaps: Mapping[str, Iterable[Gap]]) -> pa.Table:
    """Return the table `gaps`.

    Args:
        gaps: By question what could not be told.
    """
    return table_of(
        TABLE,
        [
            {
                "question": question,
                **_columns(each),
                "parameters": each.parameters_as_json,
            }
            for question, some in gaps.items()
            for each in dict.fromkeys(some)
        ],
    )


def gap_documents(gaps: Iterable[Gap]) -> list[dict[str, Any]]:
    """Return gaps as JSON has them beside the tables."""
    return [
        {
            **{name: _plain(value) for name, value in _columns(each).items()},
            "parameters": _parameters(each),
        }
        for each in dict.fromkeys(gaps)
    ]


def _columns(each: Gap) -> dict[str, Any]:
    place = {_TIMES.get(name, name): value for name, value in each.place.items()}
    return {"code": each.code, **place, "words": each.words}


def _parameters(each: Gap) -> dict[str, Any]:
    return {name: _plain(value) for name, value in each.parameters.items() if value is not None}


def _plain(value: Any) -> Any:  # noqa: ANN401 - as JSON has it
    if isinstance(value, Gap):
        place = {name: _plain(each) for name, each in value.place.items() if each is not None}
        return {"code": value.code, **place, "parameters": _parameters(value)}
    if isinstance(value, datetime):
        return iso_time(milliseconds_of(value))
    if value is None or isinstance(value, str | int):
        return value
    return [_plain(each) for each in value]


def gap_of_row(row: Mapping[str, Any]) -> Gap:
    """Return the gap that a row of the table `gaps` has."""
    place = {name: row[_TIMES.get(name, name)] for name in PLACE}
    return _gap_of({"code": row["code"], **place, "parameters": json.loads(row["parameters"])})


def _gap_of(plain: Mapping[str, Any]) -> Gap:
    kind = gap_kind(plain["code"])
    parameters = {
        name: _value_of(kind.parameters[name], value) for name, value in plain["parameters"].items()
    }
    place: dict[str, Any] = {name: plain.get(name) for name in PLACE}
    for name in _TIMES:
        if isinstance(place[name], str):
            place[name] = datetime.fromisoformat(place[name])
    return Gap(plain["code"], **place, parameters=parameters)


def _value_of(declared: ParameterType, value: Any) -> Any:  # noqa: ANN401 - as JSON has it
    if declared.name != "gap":
        return tuple(value) if declared.is_list else value
    return tuple(_gap_of(each) for each in value) if declared.is_list else _gap_of(value)


def _items(declared: ParameterType, value: Any) -> Sequence[Any]:  # noqa: ANN401 - as checked
    """Return what a parameter holds, one or several; none where it lacks."""
    if value is None:
        return ()
    return tuple(value) if declared.is_list else (value,)


def _check(code: str, name: str, declared: ParameterType, value: object) -> None:
    if value is None and declared.is_optional:
        return
    is_several = isinstance(value, Sequence) and not isinstance(value, str)
    items = list(value) if isinstance(value, Sequence) and is_several else [value]
    if is_several != declared.is_list or not all(_is_of(declared, each) for each in items):
        raise TypeError(f"{code}: {name} is {value!r}, not of type {declared.name}")


def _is_of(declared: ParameterType, value: object) -> bool:
    if declared.name in _INTEGERS:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, Gap if declared.name == "gap" else str)


def _text(declared: ParameterType, value: Any) -> str | int | None:  # noqa: ANN401 - as checked
    if value is None or declared.name == COUNT:
        number: int | None = value
        return number
    if declared.name == "number":
        return ranges(value) if declared.is_list else str(value)
    if declared.name == "gap":
        return joined(value) if declared.is_list else str(value.words)
    items = _items(declared, value)
    return ", ".join(repr(each) if declared.name == PATTERN else each for each in items)
