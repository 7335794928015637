"""What record types and tables are: frozen values that refuse nonsense when they are built.

A record type is described once, as data, and everything that has to know it is derived from that
description: the columnar decoder, the Arrow and Spark types, the docs, the encoder of the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.errors import SchemaError
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
from schemas.table_contract import Column, Table

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
