"""Compile a schema into column readers: once per (struct, version, layout)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.wire.cursor import WIRE_DTYPES
from analytics.wire.field_walk import FieldWalk
from analytics.wire.fields import (
    ArrayContent,
    Content,
    FixedArrayContent,
    FixedReader,
    NullableStructReader,
    PrefixedReader,
    Reader,
    TextContent,
)
from analytics.wire.structs import (
    EmbeddedReader,
    FixedRun,
    FlatStruct,
    SingleField,
    Step,
    StructReader,
    TaggedField,
    TagSection,
)
from schemas import embedded, record_type
from schemas.catalog import dialect_types
from schemas.model import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from schemas.model import Embedded, EmbeddedUse, Field, RecordType

_STRING_LENGTH = np.dtype(">i2")
_LENGTH = np.dtype(">i4")


class _Compiler:
    """Builds the readers of one message in one version and layout."""

    def __init__(
        self, version: int, layout: str | None, *, flexible: bool, remembered: frozenset[str]
    ) -> None:
        self.version = version
        self.layout = layout
        self.flexible = flexible
        self.remembered = remembered

    def struct(self, struct: Struct, path: str) -> StructReader:
        present = struct.at(self.version, self.layout)
        inline = [(each.column, self.field(each, path)) for each in present if each.tag is None]
        tags = self._tags([each for each in present if each.tag is not None], path)
        walk = FieldWalk.over(inline, tags)
        messages = {
            each.column: self._message(each.embedded)
            for each in struct.fields
            if each.embedded is not None
        }
        return StructReader(
            struct,
            steps=(*_steps(inline), *tags),
            embedded=messages,
            least=sum(reader.least for _, reader in inline) + len(tags),
            walk=walk if walk.fields else None,
            rest=(*_steps(inline[len(walk.fields) :]), *(() if walk.ends_with_no_tags else tags)),
        )

    def _tags(self, tagged: list[Field], path: str) -> tuple[TagSection, ...]:
        """Return the section that a flexible version's struct ends with."""
        if not self.flexible:
            return ()
        known = {
            each.tag: TaggedField(each, self.field(each, path))
            for each in tagged
            if each.tag is not None
        }
        return (TagSection(path, self.version, known),)

    def field(self, each: Field, parent: str) -> Reader:
        path = f"{parent}.{each.name}" if parent else each.name
        if each.is_array:
            return self._prefixed(self._array(each, path))
        return self._single(each, path, nullable=self.version in each.nullable)

    def _single(self, each: Field, path: str, *, nullable: bool) -> Reader:
        if each.type in WIRE_DTYPES:
            return FixedReader(path, each.wire_type(self.layout), each.type)
        if each.type == "struct":
            struct = self.struct(each.struct, path)
            return NullableStructReader(each, path, struct) if nullable else struct
        return self._prefixed(self._text(each, path, nullable=nullable))

    def _prefixed(self, content: Content) -> PrefixedReader:
        return PrefixedReader(content, 1 if content.prefix is None else content.prefix.itemsize)

    def _prefix(self, plain: np.dtype[np.signedinteger]) -> np.dtype[np.signedinteger] | None:
        return None if self.flexible else plain

    def _text(self, each: Field, path: str, *, nullable: bool) -> TextContent:
        prefix = self._prefix(_STRING_LENGTH if each.type == "string" else _LENGTH)
        remembered = path if path in self.remembered else None
        return TextContent(path, prefix, nullable, remembered)

    def _array(self, each: Field, path: str) -> Content:
        prefix, nullable = self._prefix(_LENGTH), self.version in each.nullable
        if each.type in WIRE_DTYPES:
            wire_type = each.wire_type(self.layout)
            return FixedArrayContent(path, prefix, nullable, wire_type, each.type)
        item = self._single(each, path, nullable=False)
        messages: Mapping[str, EmbeddedReader] = {}
        if isinstance(item, StructReader):
            messages, item = item.embedded, replace(item, embedded={})
        flat = self._flat(item) if isinstance(item, StructReader) else None
        simple = not any(inner.is_array or inner.tag is not None for _, inner in each.struct.walk())
        return ArrayContent(each, path, prefix, nullable, item, flat, simple, messages)

    def _flat(self, item: StructReader) -> FlatStruct | None:
        if not item.steps:
            return None
        run, tags = item.steps[0], item.steps[1:]
        if not isinstance(run, FixedRun) or run.then is not None:
            return None
        if any(not isinstance(each, TagSection) or each.fields for each in tags):
            return None
        parts: list[Any] = [(name, run.dtype[name]) for name in run.dtype.names or ()]
        parts += [("tags", np.dtype("u1"))] if tags else []
        return FlatStruct(item, np.dtype(parts), self.flexible)

    def _message(self, use: EmbeddedUse) -> EmbeddedReader:
        message = embedded(use.name)
        return EmbeddedReader(use, message, embedded_readers(message), early_readers(message))


def _steps(inline: Sequence[tuple[str, Reader]]) -> list[Step]:
    """Group neighbouring fixed-width fields, and a fixed-width length after them, in runs."""
    steps: list[Step] = []
    run: list[tuple[str, FixedReader]] = []
    for name, reader in inline:
        if isinstance(reader, FixedReader):
            run.append((name, reader))
            continue
        if isinstance(reader, PrefixedReader) and reader.content.prefix is not None:
            steps.append(_run(run, (name, reader.content)))
        else:
            steps += [_run(run, None)] if run else []
            steps.append(SingleField(name, reader))
        run = []
    return [*steps, _run(run, None)] if run else steps


def _run(run: list[tuple[str, FixedReader]], then: tuple[str, Content] | None) -> FixedRun:
    parts: list[Any] = [
        (f"f{place}", WIRE_DTYPES[reader.wire_type]) for place, (_, reader) in enumerate(run)
    ]
    if then is not None:
        parts.append(("length", then[1].prefix))
    return FixedRun(tuple(run), then, np.dtype(parts))


@cache
def embedded_readers(message: Embedded) -> dict[int, StructReader]:
    """Readers of an embedded message, by version."""
    return {
        version: _embedded_reader(message.struct, version)
        for version in range(message.versions.first, message.versions.last + 1)
    }


@cache
def early_readers(message: Embedded) -> dict[int, tuple[StructReader, ...]]:
    """Readers of an embedded message that ends early, by version: the most fields first."""
    if not message.may_end_early:
        return {}
    return {
        version: tuple(
            _embedded_reader(Struct(message.struct.at(version, None)[:count]), version)
            for count in range(len(message.struct.at(version, None)) - 1, 0, -1)
        )
        for version in range(message.versions.first, message.versions.last + 1)
    }


def _embedded_reader(struct: Struct, version: int) -> StructReader:
    return _Compiler(version, None, flexible=False, remembered=frozenset()).struct(struct, "")


@cache
def key_reader(name: str) -> StructReader:
    """Reader of a record type's key (after its id); keys are never flexible."""
    compiler = _Compiler(0, None, flexible=False, remembered=frozenset())
    return compiler.struct(record_type(name).key, "key")


@cache
def value_reader(name: str, version: int, layout: str | None) -> StructReader:
    """Reader of a record type's value (after its version) in one version and layout."""
    return _value_reader(record_type(name), version, layout)


@cache
def dialect_reader(dialect: str, name: str, version: int) -> StructReader:
    """Reader of a value (after its version) of a record type that only a dialect has."""
    return _value_reader(dialect_types(dialect)[name], version, None)


def _value_reader(kind: RecordType, version: int, layout: str | None) -> StructReader:
    flexible = version in kind.flexible
    compiler = _Compiler(version, layout, flexible=flexible, remembered=_conditions(kind))
    return compiler.struct(kind.value, "")


def _conditions(kind: RecordType) -> frozenset[str]:
    return frozenset(
        each.embedded.when_field
        for _, each in kind.value.walk()
        if each.embedded is not None and each.embedded.when_field is not None
    )
