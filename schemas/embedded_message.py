"""A message that travels as bytes inside another message's field."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.errors import SchemaError
from schemas.fields import Field, Struct, check_versions
from schemas.names import SNAKE_CASE
from schemas.versions import LAST_VERSION, NO_VERSIONS, VersionRange

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
