"""What record types and tables are: frozen values that refuse nonsense when they are built.

A record type is described once, as data, and everything that has to know it is derived from that
description: the columnar decoder, the Arrow and Spark types, the docs, the encoder of the tests.

The contract of a table: what every stage that reads or writes it relies on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from schemas.fields import (
    LAST_VERSION,
    NO_VERSIONS,
    ZERO_UUID,
    Default,
    EmbeddedUse,
    Field,
    Struct,
    VersionRange,
    check_versions,
)
from schemas.names import SNAKE_CASE, refuse_duplicates, snake_case
from schemas.reading import SchemaError, Shape, load, read_as, words_of
from schemas.shown import ALWAYS, MAIN, UNITS, View, check_sources

# Closed lists that columns of text take their values from: in a table's file, or in `rules/`.


@dataclass(frozen=True)
class ClosedList:
    """A list of words of which a column holds one, or null.

    Attributes:
        words: The words; none where another file has them.
        of: Where they are the names of sections of files in `rules/`: "lag.verdicts".
    """

    words: tuple[str, ...] = ()
    of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a list that is none, or has a word twice.

        Raises:
            SchemaError: It has no words, or words of its own and those of another file.
        """
        if bool(self.words) is bool(self.of):
            raise SchemaError("a closed list has words, or names the section that has them")
        if len(set(self.words)) < len(self.words):
            raise SchemaError("a closed list has a word twice")

    @property
    def values(self) -> tuple[str, ...]:
        """The words, in their order.

        Raises:
            SchemaError: There is no such section.
        """
        return self.words or tuple(
            dict.fromkeys(word for place in self.of for word in _names_of_section(place))
        )


class Sections(Shape, frozen=True):
    """Where the words of a closed list are: `{"of": "lag.verdicts"}`, or several likewise."""

    of: str | tuple[str, ...]


def closed_list(content: object) -> ClosedList:
    """Return the closed list that a column declares.

    Args:
        content: Words, or `Sections`, as they are in the file.

    Raises:
        SchemaError: It is neither.
    """
    words = read_as(tuple[str, ...] | Sections, content)  # type: ignore[arg-type]
    if isinstance(words, Sections):
        return ClosedList(of=(words.of,) if isinstance(words.of, str) else words.of)
    return ClosedList(words=words)


@cache
def _names_of_section(place: str) -> tuple[str, ...]:
    name, _, section = place.partition(".")
    file = f"rules/{name}.json"
    words = tuple(words_of(load(dict[str, Any], file).get(section) or {}))
    if not words:
        raise SchemaError(f"has no {section!r} to take values from", file=file)
    return words


TABLE_KINDS = frozenset(
    {"decoded", "data_log", "state", "history", "evaluation", "control", "saved"}
)
TEXT_TYPES = frozenset({"string", "array<string>"})
_FORMS_OF_NAMES = {
    "group_id": "group",
    **dict.fromkeys(("partition", "coordinator_partition"), "partition"),
    **dict.fromkeys(("topic", "copy", "client_id", "member_id"), "name"),
}
_FORMS_OF_UNITS = {"ms": "duration", "bytes": "bytes", "share": "share"}
_FORMS_OF_TYPES = {
    "timestamp": "time",
    "double": "decimal",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "number"),
}
NUMBER_TYPES = frozenset({"tinyint", "smallint", "int", "bigint", "double"})


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its name.
        type: Spark DDL ("array<struct<path:string,tag:int>>").
        nullable: Whether it may be null.
        about: What it holds.
        closed: The words of which it holds one, or a list of some; None where any text may be.
        unit: What a number counts; None where its meaning says so.
        bound: The column that says whether a value is exact: a word of `shown.SIGNS_OF_BOUNDS`,
            whether it may have been earlier, or the instant before which it was not; None where
            each is.
        head: What stands above it where that is not what stands above others of its name.
        rank: 1 where it is always shown; of others the largest is left out first.
    """

    name: str
    type: str
    nullable: bool
    about: str
    closed: ClosedList | None = None
    unit: str | None = None
    bound: str | None = None
    head: str | None = None
    rank: int = ALWAYS

    @property
    def form_on_page(self) -> str:
        """How its cells are made on a page where a view does not say so."""
        if self.name in _FORMS_OF_NAMES:
            return _FORMS_OF_NAMES[self.name]
        if self.unit in _FORMS_OF_UNITS:
            return _FORMS_OF_UNITS[self.unit]
        if self.type == "string" and self.closed is not None:
            return "word"
        return _FORMS_OF_TYPES.get(self.type, "text")

    def __post_init__(self) -> None:
        """Refuse a column without a proper name, type or meaning.

        Raises:
            SchemaError: One of the three is missing or malformed, or values are of no text, or
                a unit is not known or of a text.
        """
        if not SNAKE_CASE.fullmatch(self.name):
            raise SchemaError("a column's name is written in snake_case", field=self.name)
        if not self.type.strip() or not self.about.strip():
            raise SchemaError("has no type or says nothing about itself", field=self.name)
        if self.closed is not None and self.type not in TEXT_TYPES:
            raise SchemaError("has values, and is no text", field=self.name)
        if self.unit is not None and (self.unit not in UNITS or self.type not in NUMBER_TYPES):
            raise SchemaError(f'has unit "{self.unit}"', field=self.name)


@dataclass(frozen=True)
class Table:
    """The contract of a table: its columns in order, and the columns that tell rows apart.

    `views` are selections of its columns that people are shown, and of columns derived from them;
    none where it is for programs only.
    """

    name: str
    kind: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    about: str
    views: tuple[View, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a table that could not be written.

        Raises:
            SchemaError: Columns collide, or the key names a column that is not there.
        """
        if not SNAKE_CASE.fullmatch(self.name):
            raise SchemaError(f'name "{self.name}" is not snake_case')
        if self.kind not in TABLE_KINDS:
            raise SchemaError(f'unknown kind "{self.kind}"')
        if not self.columns or not self.about.strip():
            raise SchemaError("has no columns or says nothing about itself")
        names = [column.name for column in self.columns]
        refuse_duplicates("column", names)
        refuse_duplicates("key column", self.key)
        for name in self.key:
            if name not in names:
                raise SchemaError(f'key names "{name}", which is no column')
        for column in self.columns:
            if column.bound is not None and column.bound not in names:
                raise SchemaError(f'is bounded by "{column.bound}", which is no column')
        refuse_duplicates("view", [each.name for each in self.views])
        for view in self.views:
            check_sources(view, names)

    def view(self, name: str = MAIN) -> View:
        """Return the view of that name, by default the one that the table is shown as.

        Raises:
            KeyError: The table has no such view.
        """
        for each in self.views:
            if each.name == name:
                return each
        raise KeyError(f"{self.name} has no view {name!r}")

    def column(self, name: str) -> Column:
        """Return the column of that name.

        Raises:
            KeyError: The table has no such column.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @cached_property
    def closed_columns(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """The columns that hold words of a closed list, with these words.

        Raises:
            SchemaError: A list is in no file.
        """
        return tuple(
            (each.name, frozenset(each.closed.values))
            for each in self.columns
            if each.closed is not None
        )

    def ddl(self, *, not_null: bool = True) -> str:
        """Return the columns as Spark DDL, with NOT NULL where a null would break the contract.

        Args:
            not_null: False leaves NOT NULL out, as files read by Spark never promise it.
        """
        return ", ".join(
            f"`{column.name}` {column.type}"
            + (" NOT NULL" if not_null and not column.nullable else "")
            for column in self.columns
        )


# A message that travels as bytes inside another message's field.

EMBEDDED_FRAMINGS = frozenset({"int16-version", "none"})

FIELDS_WRITTEN = Field(
    "fieldsWritten",
    "int32",
    "How many fields were written, where the bytes end before the last field of their version: the "
    "others have their defaults, and Kafka's own reader refuses the bytes. Null where all were.",
)
"""What a decoded message that may end early has beside its fields."""


@dataclass(frozen=True)
class Embedded:
    """A message that travels as bytes inside a field; never flexible.

    `framing` "int16-version" puts an int16 version first, and a version above the last known one
    is read as that (versions only append); "none" has no version at all, so the known ones are
    tried newest first. With `lenient_tail`, bytes after the last field are ignored, as Kafka does.
    With `may_end_early`, bytes that end after any field but the last are read, too: the fields that
    are missing have their defaults. Kafka refuses such bytes; some clients write them.
    """

    name: str
    struct: Struct
    versions: VersionRange
    framing: str
    lenient_tail: bool
    about: str
    may_end_early: bool = False

    def __post_init__(self) -> None:
        """Refuse an embedded message that cannot be read.

        Raises:
            SchemaError: The parts contradict each other; it names the field.
        """
        if not SNAKE_CASE.fullmatch(self.name):
            raise SchemaError(f'name "{self.name}" is not snake_case')
        if self.framing not in EMBEDDED_FRAMINGS:
            raise SchemaError(f'unknown framing "{self.framing}"')
        if not self.versions or self.versions.last == LAST_VERSION:
            raise SchemaError("names its versions, first and last")
        if not self.struct.fields:
            raise SchemaError("has no fields")
        for path, each in self.struct.walk():
            try:
                check_versions(each, self.versions, NO_VERSIONS)
                _check_plain(each)
            except SchemaError as error:
                raise error.inside(path) from None

    @property
    def row(self) -> Struct:
        """The columns of a decoded message: its fields and, where it may end early, how many."""
        if not self.may_end_early:
            return self.struct
        return Struct((*self.struct.fields, FIELDS_WRITTEN))


def _check_plain(each: Field) -> None:
    if each.layouts or each.type_in or each.embedded:
        raise SchemaError("an embedded message has one layout and embeds nothing")


# A kind of record in an internal topic: what its bytes mean, in every version and layout.

FRAMINGS = frozenset({"coordinator", "metadata", "control"})
_KEYLESS = {
    "metadata": "a record of the metadata log has no key",
    "control": "the key of a control record is its version and type",
}
READS = frozenset({"decode", "count", "secret"})


@dataclass(frozen=True)
class RecordType:
    """A kind of record in one internal topic: its numbers, key, value and how it is framed.

    `framing` "coordinator" is an int16 id before the key and an int16 version before the value;
    "metadata" is that of the KRaft log, varints before the value and no key; "control" is that of
    control batches, whose key is a version and the id, before the value a version. `read` says
    whether its fields are decoded, its records only counted, or counted and never kept ("secret").
    `layouts` names, newest first, the layouts that one value version has had; empty where there
    is one.
    """

    ids: tuple[int, ...]
    name: str
    table: str
    topic: str
    framing: str
    read: str
    key: Struct
    value: Struct
    versions: VersionRange
    flexible: VersionRange
    layouts: tuple[str, ...]
    about: str

    def __post_init__(self) -> None:
        """Refuse a record type that no bytes could follow.

        Raises:
            SchemaError: The parts contradict each other; it names the field.
        """
        self._check_identity()
        self._check_framing()
        for part, struct in (("key", self.key), ("value", self.value)):
            for path, each in struct.walk(part):
                try:
                    self._check_field(part, each)
                except SchemaError as error:
                    raise error.inside(path) from None
        self._check_layouts()

    def _check_identity(self) -> None:
        if not self.ids or not all(0 <= number <= LAST_VERSION for number in self.ids):
            raise SchemaError(f"ids {list(self.ids)} are no numbers of a record type")
        refuse_duplicates("id", self.ids)
        if self.table != snake_case(self.name):
            raise SchemaError(f'table "{self.table}" of {self.name}: use {snake_case(self.name)}')
        if not self.versions:
            raise SchemaError("no version can be read")
        if not self.about.strip():
            raise SchemaError("says nothing about itself")

    def _check_framing(self) -> None:
        if self.framing not in FRAMINGS:
            raise SchemaError(f'unknown framing "{self.framing}"')
        if self.read not in READS:
            raise SchemaError(f'read is "{self.read}": decode, count or secret')
        if self.read != "decode" and (self.key.fields or self.value.fields or self.layouts):
            raise SchemaError(f"fields of a type that is not decoded ({self.read})")
        if self.framing in _KEYLESS:
            if self.key.fields:
                raise SchemaError(_KEYLESS[self.framing], field="key")
            if self.framing == "metadata" and not self.versions.within(self.flexible):
                raise SchemaError("every version is flexible in the metadata log")
        elif self.read == "decode" and not self.key.fields:
            raise SchemaError("has no fields", field="key")

    def _check_field(self, part: str, each: Field) -> None:
        check_versions(each, self.versions, self.flexible if part == "value" else NO_VERSIONS)
        for layout in (*each.layouts, *each.type_in):
            if layout not in self.layouts:
                raise SchemaError(f'layout "{layout}" is not declared')
        if self.layouts and set(each.layouts) == set(self.layouts):
            raise SchemaError("names every layout; leave layouts out")
        if part == "key" and (each.layouts or each.type_in or each.embedded):
            raise SchemaError("a key has one layout and embeds nothing")
        if each.embedded is not None and each.embedded.when_field is not None:
            self._check_condition(each.embedded.when_field)

    def _check_condition(self, name: str) -> None:
        if not any(
            each.name == name and each.type == "string" and not each.is_array
            for each in self.value.fields
        ):
            raise SchemaError(f'no string "{name}" in the value to depend on')

    def _check_layouts(self) -> None:
        refuse_duplicates("layout", self.layouts)
        shapes = [
            tuple(
                (path, each.wire_type(layout))
                for path, each in self.value.walk()
                if not each.layouts or layout in each.layouts
            )
            for layout in self.layouts
        ]
        if len(self.layouts) == 1 or len(set(shapes)) < len(shapes):
            raise SchemaError(f"layouts {', '.join(self.layouts)} do not differ")


__all__ = [
    "ZERO_UUID",
    "Column",
    "Default",
    "Embedded",
    "EmbeddedUse",
    "Field",
    "RecordType",
    "SchemaError",
    "Struct",
    "Table",
    "VersionRange",
]
