"""Versions, fields and structs: the tree a message's schema consists of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from schemas.names import LOWER_CAMEL_CASE, refuse_duplicates, snake_case
from schemas.reading import SchemaError

# Ranges of schema versions, in the notation that Kafka's own documentation uses.

LAST_VERSION = 32767
"""Versions are int16 on the wire, so this is what an open range ("3+") ends at."""

_NOTATION = re.compile(r"(?P<first>\d+)(?:(?P<open>\+)|-(?P<last>\d+))?")


@dataclass(frozen=True)
class VersionRange:
    """Versions first to last, both included; last below first when no version is meant."""

    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuse what is neither a range of int16 versions nor the empty range.

        Raises:
            SchemaError: The bounds are out of range or the wrong way round.
        """
        if (self.first, self.last) == (0, -1):
            return
        if not 0 <= self.first <= self.last <= LAST_VERSION:
            raise SchemaError(f"versions {self.first} to {self.last} are not a range")

    def __contains__(self, version: int) -> bool:
        """Whether the version lies in the range."""
        return self.first <= version <= self.last

    def __bool__(self) -> bool:
        """Whether any version lies in the range."""
        return self.first <= self.last

    def __str__(self) -> str:
        """Return the range as it is written in a schema file."""
        if not self:
            return "none"
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}+" if self.last == LAST_VERSION else f"{self.first}-{self.last}"

    def within(self, other: VersionRange) -> bool:
        """Whether the other range holds every version of this one."""
        return not self or (other.first <= self.first and self.last <= other.last)

    def overlap(self, other: VersionRange) -> VersionRange:
        """Return the versions that both ranges hold."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return VersionRange(first, last) if first <= last else NO_VERSIONS

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Read "3+" (3 and later), "1" (1 alone), "0-4" or "none".

        Raises:
            SchemaError: The text is none of these.
        """
        if text == "none":
            return NO_VERSIONS
        match = _NOTATION.fullmatch(text)
        if match is None:
            raise SchemaError(f'versions "{text}": write "3+", "1", "0-4" or "none"')
        first = int(match["first"])
        if match["open"]:
            return cls(first, LAST_VERSION)
        return cls(first, int(match["last"] or first))


NO_VERSIONS = VersionRange(0, -1)
ALL_VERSIONS = VersionRange(0, LAST_VERSION)


Default = int | str | bool | None

INTEGER_BOUNDS: Mapping[str, tuple[int, int]] = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
"""Integer wire types with the least and the greatest value each can hold."""

FIELD_TYPES = frozenset({*INTEGER_BOUNDS, "bool", "string", "bytes", "uuid", "struct"})
NULLABLE_TYPES = frozenset({"string", "bytes", "struct"})
"""Types that have a null on the wire; arrays have one too, whatever they hold."""

ZERO_UUID = "A" * 22
"""The text form of sixteen zero bytes, which stands for "no id"."""

ZERO_OF: Mapping[str, Default] = {
    **dict.fromkeys(INTEGER_BOUNDS, 0),
    "bool": False,
    "string": "",
    "uuid": ZERO_UUID,
}
"""What Kafka takes for an unwritten field whose schema names no default."""


@dataclass(frozen=True)
class EmbeddedUse:
    """A bytes field that holds a message of its own, parsed into `<column>_decoded` beside it.

    Where `when_field` is given, the bytes are parsed only in records whose value has that string in
    that field: a classic group's member metadata is the consumer protocol only if the group's
    protocolType says so.
    """

    name: str
    when_field: str | None = None
    when_value: str | None = None

    def __post_init__(self) -> None:
        """Refuse half a condition.

        Raises:
            SchemaError: Only one of `when_field` and `when_value` is given.
        """
        if (self.when_field is None) != (self.when_value is None):
            raise SchemaError("a condition needs both a field and its value")


@dataclass(frozen=True)
class Field:
    """One field of a message, in all the versions and layouts that have it.

    `type` is the element's type when `is_array`. `default` is what Kafka takes for a field that was
    not written: a number, bool, string or uuid is zero or empty unless it says otherwise; for an
    array, bytes or struct, None stands for null where null is allowed and for empty where it is
    not. `type_in` names, per layout, another wire type than `type`; the column has `type` in every
    case. `layouts` is empty for a field that every layout has. `withheld_by` names the text beside
    a text: where it is that of a sensitive setting, the field's value is not kept.
    """

    name: str
    type: str
    about: str
    is_array: bool = False
    fields: tuple[Field, ...] = ()
    versions: VersionRange = ALL_VERSIONS
    nullable: VersionRange = NO_VERSIONS
    default: Default = None
    tag: int | None = None
    layouts: tuple[str, ...] = ()
    type_in: Mapping[str, str] = field(default_factory=dict, hash=False)
    embedded: EmbeddedUse | None = None
    withheld_by: str | None = None
    column: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive the column name and refuse a field that cannot exist.

        Raises:
            SchemaError: The field contradicts itself; it says how.
        """
        object.__setattr__(self, "column", snake_case(self.name))
        if self.default is None and not self.is_array and not self.nullable:
            object.__setattr__(self, "default", ZERO_OF.get(self.type))
        try:
            self._check_shape()
            self._check_withheld()
            self._check_default()
            self._check_layouts()
        except SchemaError as error:
            raise error.inside(self.name) from None

    @property
    def struct(self) -> Struct:
        """The fields of a struct or of an array's structs."""
        return Struct(self.fields)

    def wire_type(self, layout: str | None) -> str:
        """Return the type the field has on the wire in that layout."""
        return self.type if layout is None else self.type_in.get(layout, self.type)

    def is_in(self, version: int, layout: str | None) -> bool:
        """Whether values of that version and layout have the field, inline or as a tag."""
        return version in self.versions and (
            not self.layouts or layout is None or layout in self.layouts
        )

    def _check_shape(self) -> None:
        if not LOWER_CAMEL_CASE.fullmatch(self.name):
            raise SchemaError("a field's name is written in lowerCamelCase")
        if self.type not in FIELD_TYPES:
            raise SchemaError(f'unknown type "{self.type}"')
        if (self.type == "struct") != bool(self.fields):
            raise SchemaError("a struct, and only a struct, has fields")
        if not self.versions:
            raise SchemaError("is in no version")
        if not self.nullable.within(self.versions):
            raise SchemaError(f"null in {self.nullable} but present in {self.versions} only")
        if self.nullable and not self.is_array and self.type not in NULLABLE_TYPES:
            raise SchemaError(f"{self.type} has no null")
        if self.tag is not None and self.tag < 0:
            raise SchemaError(f"tag {self.tag} is negative")
        if self.embedded is not None and (self.type != "bytes" or self.is_array):
            raise SchemaError("only bytes can embed a message")
        if not self.about.strip():
            raise SchemaError("says nothing about itself")

    def _check_withheld(self) -> None:
        if self.withheld_by is not None and (self.type != "string" or self.is_array):
            raise SchemaError("only a string can be withheld")

    def _check_default(self) -> None:
        value = self.default
        if value is None:
            return
        if self.is_array or self.type in ("bytes", "struct"):
            raise SchemaError("only null or empty can be the default of this type")
        expected = {"bool": bool, "string": str, "uuid": str}.get(self.type, int)
        if type(value) is not expected:
            raise SchemaError(f"default {value!r} is no {self.type}")
        if isinstance(value, int) and not isinstance(value, bool):
            least, greatest = INTEGER_BOUNDS[self.type]
            if not least <= value <= greatest:
                raise SchemaError(f"default {value} does not fit {self.type}")

    def _check_layouts(self) -> None:
        refuse_duplicates("layout", self.layouts)
        for layout, other in self.type_in.items():
            if self.layouts and layout not in self.layouts:
                raise SchemaError(f'typeIn names layout "{layout}", which lacks the field')
            if self.is_array or other not in INTEGER_BOUNDS or self.type not in INTEGER_BOUNDS:
                raise SchemaError("only a single integer can have another wire type")
            least, greatest = INTEGER_BOUNDS[self.type]
            if other == self.type or INTEGER_BOUNDS[other][0] < least:
                raise SchemaError(f"{other} is no narrower wire type of {self.type}")
            if INTEGER_BOUNDS[other][1] > greatest:
                raise SchemaError(f"{other} does not fit the column's {self.type}")


@dataclass(frozen=True)
class Struct:
    """Fields in the order they are written, tagged ones where their column belongs."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        """Refuse fields that collide.

        Raises:
            SchemaError: Two fields share a name, a column or a tag.
        """
        refuse_duplicates("field", (each.name for each in self.fields))
        refuse_duplicates("column", self.columns())
        refuse_duplicates("tag", (each.tag for each in self.fields if each.tag is not None))
        texts = {each.name for each in self.fields if each.type == "string" and not each.is_array}
        for each in self.fields:
            if each.withheld_by is not None and each.withheld_by not in texts:
                raise SchemaError(f'no string "{each.withheld_by}" beside it', field=each.name)
        for each in self.fields:
            if each.fields:
                try:
                    Struct(each.fields)
                except SchemaError as error:
                    raise error.inside(each.name) from None

    def at(self, version: int, layout: str | None) -> tuple[Field, ...]:
        """Return the fields, inline and tagged, of that version and layout."""
        return tuple(each for each in self.fields if each.is_in(version, layout))

    def columns(self) -> tuple[str, ...]:
        """Return the columns of all versions together, parsed bytes right after the raw ones."""
        columns: list[str] = []
        for each in self.fields:
            columns.append(each.column)
            if each.embedded is not None:
                columns.append(f"{each.column}_decoded")
        return tuple(columns)

    def walk(self, parent: str = "") -> Iterator[tuple[str, Field]]:
        """Yield every field, however deep, with its path ("members.clientId")."""
        for each in self.fields:
            path = f"{parent}.{each.name}" if parent else each.name
            yield path, each
            yield from each.struct.walk(path)


def check_versions(each: Field, versions: VersionRange, flexible: VersionRange) -> None:
    """Check a field's versions against those of the message it belongs to.

    Raises:
        SchemaError: No version that is read has the field, or it is tagged where tags do not exist.
    """
    present = each.versions.overlap(versions)
    if not present:
        raise SchemaError(f"is in versions {each.versions}, none of which is read ({versions})")
    if each.tag is not None:
        if not present.within(flexible):
            raise SchemaError(f"tagged in {each.versions} but only {flexible} are flexible")
        if each.nullable and not present.within(each.nullable):
            raise SchemaError("a tagged field is nullable in all its versions or in none")
