"""Findings in words: columns of values put into a sentence, and into a command.

What is said of a value is asked once for each distinct one, never for each finding.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import polars as pl

from schemas.gaps import NUMBER, of_count
from schemas.reading import SchemaError

Phrasing = Mapping[str, Callable[[Any], Any]]
"""How numbers are said that are no plain ones: `bytes`, and `duration` of milliseconds."""

_NOT_KNOWN: Final = "not known"
_NO_VALUE: Final = "None"
_HARMLESS: Final = r"^[a-zA-Z0-9_@%+=:,./-]+$"
"""An argument that a shell takes as it is, as `shlex.quote` has it."""

_BEGIN: Final = "begin"


class WordedValue(NamedTuple):
    """The values of a name, one a finding, or one of all; and how they are said.

    Attributes:
        values: A column, or a number.
        how: A name of `Phrasing`; None says them as they are.
    """

    values: pl.Series | float
    how: str | None = None


def worded(
    sentence: str, values: Mapping[str, WordedValue], phrasing: Phrasing, count: int
) -> pl.Series:
    """Return a sentence with the values of its names, once for each finding.

    Args:
        sentence: With names in braces; `{offsets:offset}` is a number and its noun, and
            `{offsets:# offset is|# offsets are}` what is written of one, and of any other number.
        values: By name.
        phrasing: How numbers are said that are no plain ones.
        count: How many findings there are.
    """
    texts = [
        literal if name is None else _in_words(values[name], noun, phrasing)
        for literal, name, noun in _parts(sentence)
    ]
    return _joined(texts, count)


def worded_command(
    command: str,
    values: Mapping[str, WordedValue],
    arguments: Mapping[str, str | pl.Series],
    count: int,
) -> pl.Series:
    """Return a command in which no value can do more than be an argument, once for each finding.

    Args:
        command: With names in braces.
        values: Values by name.
        arguments: By name what is quoted for a shell already.
        count: How many findings there are.

    Raises:
        SchemaError: A name has a noun: a command has none.
    """
    texts: list[str | pl.Series] = []
    for literal, name, noun in _parts(command):
        if noun:
            raise SchemaError(f"command {command!r}: {noun!r} has no meaning in a command")
        if name is None:
            texts.append(literal)
        else:
            texts.append(arguments[name] if name in arguments else _argument(values[name]))
    return _joined(texts, count)


def as_names(values: pl.Series) -> pl.Series:
    """Return values as text, as they are compared and looked up: the number 7 is `7`."""
    if values.dtype == pl.String or values.dtype.is_integer():
        return values.cast(pl.String).fill_null(_NO_VALUE)
    return _each_once(values, str)


def quoted(texts: pl.Series) -> pl.Series:
    """Return texts as arguments that a shell takes for one each, as `shlex.quote` makes them."""
    text = pl.col(texts.name)
    escaped = text.str.replace_all("'", "'\"'\"'", literal=True)
    in_quotes = pl.concat_str(pl.lit("'"), escaped, pl.lit("'"))
    is_harmless = text.str.contains(_HARMLESS)
    return texts.to_frame().select(pl.when(is_harmless).then(text).otherwise(in_quotes)).to_series()


def _parts(template: str) -> Iterator[tuple[str, str | None, str]]:
    """Yield texts (without a name), and names with the noun that follows their colon."""
    for literal, name, noun, conversion in string.Formatter().parse(template):
        if literal:
            yield literal, None, ""
        if conversion:
            raise SchemaError(f"{template!r}: names have no conversion")
        if name is not None:
            yield "", name, noun or ""


def _joined(texts: list[str | pl.Series], count: int) -> pl.Series:
    columns = {str(n): each for n, each in enumerate(texts) if isinstance(each, pl.Series)}
    frame = pl.DataFrame({_BEGIN: pl.repeat("", count, eager=True), **columns})
    parts = [
        pl.lit(each) if isinstance(each, str) else pl.col(str(n)) for n, each in enumerate(texts)
    ]
    return frame.select(pl.concat_str(_BEGIN, *parts)).to_series()


def _in_words(value: WordedValue, noun: str, phrasing: Phrasing) -> str | pl.Series:
    values, how = value
    if noun:
        return _of_values(values, lambda each: _counted(each, noun))
    phrase = None if how is None else phrasing.get(how)
    if phrase is not None:
        return _of_values(values, lambda each: _NOT_KNOWN if each is None else str(phrase(each)))
    if isinstance(values, pl.Series) and values.dtype == pl.String:
        return values.fill_null(_NOT_KNOWN)
    return _of_values(values, _text)


def _argument(value: WordedValue) -> str | pl.Series:
    values, _ = value
    if isinstance(values, pl.Series) and values.dtype == pl.String:
        return quoted(values).fill_null(_NO_VALUE)
    return _of_values(values, _plain)


def _of_values(values: pl.Series | float, say: Callable[[Any], str]) -> str | pl.Series:
    return _each_once(values, say) if isinstance(values, pl.Series) else say(values)


def _each_once(values: pl.Series, say: Callable[[Any], str]) -> pl.Series:
    """Return what is said of each value, null among them, asked once for each distinct one."""
    if values.dtype.is_float():
        # Polars takes 0 and -0 for the same, and they are not said alike.
        return pl.Series([say(each) for each in values], dtype=pl.String)
    distinct = values.unique()
    words = pl.Series([say(each) for each in distinct.to_list()], dtype=pl.String)
    known = pl.DataFrame({"value": distinct, "words": words})
    asked = pl.DataFrame({"value": values})
    return asked.join(known, on="value", how="left", nulls_equal=True, maintain_order="left")[
        "words"
    ]


def _counted(value: Any, noun: str) -> str:  # noqa: ANN401 - a cell
    one, is_split, many = noun.partition("|")
    if not is_split:
        one, many = f"{NUMBER} {noun}", f"{NUMBER} {noun}s"
    number = "an unknown number of" if value is None else f"{value:,}"
    return of_count((one, many), value, number)


def _text(value: Any) -> str:  # noqa: ANN401 - a cell
    if value is None:
        return _NOT_KNOWN
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else _plain(value)


def _plain(value: Any) -> str:  # noqa: ANN401 - a cell
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)
