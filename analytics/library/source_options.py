"""What the data source `kafka_dump` is asked for: a table and options, checked before any work.

An option that a table does not have is an error that names the nearest, never passed over: whoever
misspells `asOf` would be told of another instant. Spark's options have no case.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from analytics.errors import InputNotRecognizedError, SettingRefusedError
from schemas import table, tables
from schemas.names import did_you_mean, nearest_name

if TYPE_CHECKING:
    from analytics.questions.question import Question

TABLE, COLUMNS, PATH, PATHS = "table", "columns", "path", "paths"
LINE, PREFER_COPY = "line", "preferCopy"
STRICT, PUSH_FILTERS = "strictHighWatermark", "pushFilters"
AS_OF, KAFKA_VERSION, ASSUME, WORK = "asOf", "kafkaVersion", "assume", "work"
QUESTION: Final = "question"
OF_READ: Final = (TABLE, COLUMNS)
OF_DECODING: Final = (PREFER_COPY, STRICT, PUSH_FILTERS)
OF_REPLAY: Final = (AS_OF, KAFKA_VERSION, ASSUME)

DECODED_KINDS: Final = frozenset({"decoded", "control"})
REPLAYED_KINDS: Final = frozenset({"state", "history"})
_NOT_READ: Final = frozenset({"saved"})
"""Tables of a catalog, which no dump and no workspace holds."""
GAPS: Final = "gaps"
_DEFAULT: Final = "offset_commit"

BESIDE_THE_DUMP: Final = {"diff": "since", "restore": "against", "region": "contributions"}
"""Settings that no option can name, of questions that mean nothing without."""
STATES_AROUND: Final = "states"
"""A setting that the library gives: states around an incident, of a dump that is asked whole."""
_NOT_A_SETTING: Final = frozenset({"kafka_version"})
"""The release is an option of the replay, and the question goes by it."""


@dataclass(frozen=True)
class SourceOptions:
    """The options of one read, checked.

    Attributes:
        paths: What is read: INPUTs as commands take them.
        table: The name of the table.
        schema: The columns of it that are wanted.
        question: The question whose table it is, where one is named or there is only one.
        settings: Of the question, by name, as far as options say.
        as_of: The instant that is asked about; None where none is named.
        values: All options that were given, by their names as they are documented.
    """

    paths: tuple[str, ...]
    table: str
    schema: pa.Schema
    question: str | None
    settings: Mapping[str, Any]
    as_of: str | int | None
    values: Mapping[str, str]

    @property
    def is_decoded(self) -> bool:
        """Whether the table is one of decoded records."""
        return table(self.table).kind in DECODED_KINDS

    @property
    def is_of_state(self) -> bool:
        """Whether the table is of state or history, and no question is named that has it, too."""
        return table(self.table).kind in REPLAYED_KINDS and self.question is None

    @property
    def is_asked(self) -> bool:
        """Whether options say more than which rows: what is stored may be no answer to that."""
        return bool(self.values.keys() - {*OF_READ, LINE, WORK})

    def flag(self, name: str) -> bool:
        """Return an option that is true or false; false where it is not given.

        Raises:
            SettingRefusedError: It is neither.
        """
        return _flag(name, self.values.get(name, "false"))

    def names(self, name: str) -> tuple[str, ...]:
        """Return an option that is a list, with commas between."""
        return _texts(name, self.values.get(name, ""))


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """Check the options of a read.

    Args:
        options: As Spark hands them over: names in lower case.

    Raises:
        InputNotRecognizedError: There is no path.
        SettingRefusedError: There is no such table, column, question or option, or a value is none
            of its option's.
    """
    given = dict(options)
    paths = _paths(given.pop(PATH, None), given.pop(PATHS, None))
    name = given.get(TABLE, _DEFAULT)
    _check_table(name)
    chosen = _question(name, given.get(QUESTION))
    settings = {} if chosen is None else settings_of(chosen)
    values = _by_their_names(given, name, (*_options_of(name, chosen), *settings))
    for each in (STRICT, PUSH_FILTERS):
        _flag(each, values.get(each, "false"))
    as_of = values.get(AS_OF)
    return SourceOptions(
        paths,
        name,
        _wanted_columns(name, values.get(COLUMNS, "")),
        None if chosen is None else chosen.name,
        {
            settings[each].name: settings[each].read(each, value)
            for each, value in values.items()
            if each in settings
        },
        None if as_of is None else _instant(AS_OF, as_of),
        values,
    )


def _by_their_names(values: Mapping[str, str], name: str, options: Sequence[str]) -> dict[str, str]:
    """Return the options of a table by their names as they are documented.

    Raises:
        SettingRefusedError: The table has no such option.
    """
    known = {each.lower(): each for each in options}
    for each in values:
        if each not in known:
            near = nearest_name(each, known)
            hint = f"did you mean {known[near]!r}?" if near else f"it has {', '.join(options)}"
            raise SettingRefusedError(f"table {name} has no option {each!r}: {hint}")
    return {known[each]: value for each, value in values.items()}


def _options_of(name: str, chosen: Question[Any, Any] | None) -> tuple[str, ...]:
    """Return the options that a table has, but for settings of a question."""
    kind = table(name).kind
    if kind in DECODED_KINDS:
        return (*OF_READ, LINE, *OF_DECODING)
    if chosen is not None or kind in REPLAYED_KINDS or questions_with(name):
        return (*OF_READ, QUESTION, *OF_REPLAY, WORK)
    return OF_READ


def questions_with(name: str) -> list[Question[Any, Any]]:
    """Return the questions that answer with an evaluation table, and that options can ask."""
    if table(name).kind != "evaluation":
        return []
    return [
        each
        for each in _all_questions()
        if name in (*each.tables, GAPS) and each.name not in BESIDE_THE_DUMP
    ]


def _question(name: str, question: str | None) -> Question[Any, Any] | None:
    """Return the question that is asked for a table: the one that is named, or the only one.

    Raises:
        SettingRefusedError: There is no such question, or it does not have the table, or no option
            can ask it.
    """
    if question is None:
        possible = questions_with(name)
        return possible[0] if len(possible) == 1 else None
    there = {each.name: each for each in _all_questions()}
    if question not in there:
        hint = did_you_mean(question, there, "there are")
        raise SettingRefusedError(f"there is no question {question!r}: {hint}")
    found = there[question]
    if name not in (*found.tables, GAPS):
        hint = did_you_mean(name, (*found.tables, GAPS), "it has")
        raise SettingRefusedError(f"question {question} has no table {name!r}: {hint}")
    if question in BESIDE_THE_DUMP:
        raise SettingRefusedError(
            f"no option can say what {question} is asked with ({BESIDE_THE_DUMP[question]}): in "
            f"Python, open_dump(...).replay().{question}(...) has its tables"
        )
    return found


def _wanted_columns(name: str, columns: str) -> pa.Schema:
    """Return the columns that are wanted, as rows of any input have them.

    Raises:
        SettingRefusedError: The table has no such column.
    """
    whole = schema_of(name)
    wanted = _texts(COLUMNS, columns) or tuple(whole.names)
    for each in wanted:
        if each not in whole.names:
            hint = did_you_mean(each, whole.names, "it has")
            raise SettingRefusedError(f"table {name} has no column {each!r}: {hint}")
    return pa.schema([whole.field(each) for each in dict.fromkeys(wanted)])


def schema_of(name: str) -> pa.Schema:
    """Return the columns of a table by its contract, as Arrow has them."""
    if table(name).kind in DECODED_KINDS:
        from analytics.decode.tables import table_schema  # noqa: PLC0415 - heavy

        return table_schema(name)
    from analytics.contracts import arrow_schema  # noqa: PLC0415 - likewise

    return arrow_schema(name)


def _paths(path: str | None, paths: str | None) -> tuple[str, ...]:
    """Return what `load` was given: one path, or Spark's list of several."""
    found = ([] if path is None else [path]) + ([] if paths is None else json.loads(paths))
    if not found:
        raise InputNotRecognizedError("kafka_dump needs load(PATH)")
    return tuple(found)


def _check_table(name: str) -> None:
    readable = [each for each, contract in tables().items() if contract.kind not in _NOT_READ]
    if name in readable:
        return
    near = nearest_name(name, readable)
    hint = f"did you mean {near!r}?" if near else "docs/tables.md lists them"
    raise SettingRefusedError(f"there is no table {name!r}: {hint}")


def _all_questions() -> list[Question[Any, Any]]:
    """Return all questions, each of which is a module of its own."""
    from analytics.questions.question import QUESTIONS, question  # noqa: PLC0415 - heavy

    return [question(each) for each in QUESTIONS]


# Settings of questions as options: those that are plain values.


@dataclass(frozen=True)
class SettingOption:
    """A setting that an option can name.

    Attributes:
        name: Of the setting.
        read: Takes the option and its text, and returns the value.
    """

    name: str
    read: Callable[[str, str], object]


def settings_of(question: Question[Any, Any]) -> dict[str, SettingOption]:
    """Return the settings of a question that are plain values, by the names of their options."""
    return {
        _camel_case(each.name): SettingOption(each.name, _READ[str(each.type)])
        for each in fields(cast("Any", question.settings))
        if each.name not in _NOT_A_SETTING and str(each.type) in _READ
    }


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _refused(option: str, value: str, looked_for: str) -> SettingRefusedError:
    return SettingRefusedError(f"option {option} is {value!r}; looked for {looked_for}")


def _text(_option: str, value: str) -> str:
    return value


def _texts(_option: str, value: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in value.split(",") if each.strip())


def _flag(option: str, value: str) -> bool:
    if value.lower() not in {"true", "false"}:
        raise _refused(option, value, "true or false")
    return value.lower() == "true"


def _integer(option: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise _refused(option, value, "a whole number") from None


def _number(option: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _refused(option, value, "a number")
    return number


def _integers(option: str, value: str) -> tuple[int, ...]:
    return tuple(_integer(option, each) for each in _texts(option, value))


def _instant(option: str, value: str) -> str | int:
    from analytics.replay.dump.choices import instant_milliseconds, moment  # noqa: PLC0415 - heavy

    try:
        instant = int(value) if _MILLISECONDS.fullmatch(value) else value
        moment(instant_milliseconds(instant))
    except (ValueError, OverflowError):
        raise _refused(
            option, value, "a time like 2026-11-21T08:15:00Z, or epoch milliseconds"
        ) from None
    return instant


_MILLISECONDS: Final = re.compile(r"-?\d{9,}")
"""Fewer digits would be a year or a compact date."""
_READ: Final[Mapping[str, Callable[[str, str], object]]] = {
    "str": _text,
    "str | None": _text,
    "bool": _flag,
    "int | None": _integer,
    "float": _number,
    "float | None": _number,
    "tuple[int, ...]": _integers,
    "tuple[str, ...]": _texts,
    "datetime | str | int | BeforeEnd | None": _instant,
}
"""What reads a value, by the type of the setting; others are no plain values."""
