"""What takes names out of tables, JSON documents and sentences of a workspace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.gaps.gap import gap_of_row
from analytics.locations import is_uri, uri_of
from analytics.redaction.text import NamesInText, Pseudonyms
from analytics.tables.parted_table import PartedTable
from schemas import tables
from schemas.names import is_said, is_withheld, kind_of, kind_of_fields, public_settings, text_of

# Tables without names: pseudonyms in columns that identify, text without known names elsewhere.
#
# Bytes are left out: nobody can tell what names are in them.

_RESOURCES = ("group", "topic")
SETTING: Final = "setting"
"""The kind of names of settings that Kafka does not have."""
_CHANGED: Final = "config_changed"
_CHANGE: Final = "(?s)^(?P<setting>.+?) (?P<how>unset|set to .*|changed, its value withheld)$"
"""What an event says of a setting, which may be in no other table any more."""
Names = dict[str, set[str]]


def names_in(tables: Iterable[pa.Table]) -> Names:
    """Return all names in tables, by kind."""
    found: Names = defaultdict(set)
    for rows in tables:
        for field in rows.schema:
            for chunk in rows[field.name].chunks:
                _collect(chunk, field.name, found)
        if _has_resources(rows):
            for kind in _RESOURCES:
                mine = rows.filter(pc.equal(rows["resource_type"], kind))["resource"]
                found[kind] |= set(mine.drop_null().to_pylist())
            found[SETTING] |= set(rows["name"].drop_null().to_pylist()) - public_settings()
        if _has_changes(rows):
            mine = rows.filter(pc.equal(rows["event"], _CHANGED))["detail"].cast(pa.string())
            named = pc.struct_field(pc.extract_regex(mine, _CHANGE).combine_chunks(), "setting")
            found[SETTING] |= set(named.drop_null().to_pylist()) - public_settings()
        if _has_gaps(rows):
            for row in rows.to_pylist():
                for kind, name in gap_of_row(row).names():
                    found[kind].add(name)
    return found


def redacted(
    rows: pa.Table, pseudonyms: Pseudonyms, text: NamesInText, key: Sequence[str] = ()
) -> pa.Table:
    """Return a table without names; its rows are in the order of what stands for them.

    Args:
        rows: The table.
        key: Columns that rows are sorted by first: the order of names would tell them apart.
        pseudonyms: For columns that identify.
        text: For all other text.
    """

    def of_text(field: str) -> Callable[[str], str]:
        kind = kind_of(field)
        if kind is not None:
            return lambda name: pseudonyms.of(kind, name)
        return {
            "words": lambda word: word,
            "sentences": text.replaced,
            "objects": text.object,
            "commands": text.command,
        }[text_of(field)]

    columns = []
    for field in rows.schema:
        chunks = [_redacted(chunk, field.name, of_text) for chunk in rows[field.name].chunks]
        columns.append(pa.chunked_array(chunks, field.type))
    made = pa.Table.from_arrays(columns, schema=rows.schema)
    named = _with_resources(rows, made, pseudonyms) if _has_resources(rows) else made
    if _has_gaps(rows):
        named = _with_gaps(rows, named, pseudonyms, text)
    return _in_order(named, key)


def _in_order(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Sort rows by a key, and where it is the same by all else that can be compared."""
    by = [*(name for name in key if name in rows.column_names)]
    by += [
        field.name
        for field in rows.schema
        if field.name not in by and not pa.types.is_nested(field.type)
    ]
    return rows.sort_by([(name, "ascending") for name in by]) if by else rows


def _collect(values: pa.Array, name: str, names: Names) -> None:
    kind = kind_of(name)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary
    if pa.types.is_struct(values.type):
        for field in values.type:
            _collect(pc.struct_field(values, field.name), field.name, names)
    elif pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        _collect(values.flatten(), name, names)
    elif pa.types.is_map(values.type):
        _collect(values.items, name, names)
    elif kind is not None and _is_text(values.type):
        names[kind] |= set(pc.unique(values).drop_null().to_pylist())


def _redacted(
    values: pa.Array, name: str, of_text: Callable[[str], Callable[[str], str]]
) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [
            _redacted(part, field.name, of_text)
            for part, field in zip(values.flatten(), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=values.is_null())
    if pa.types.is_list(kind):
        inner = _redacted(values.values, name, of_text)
        if _is_text(inner.type):
            return pa.array(_sorted(inner, values), kind)
        return pa.ListArray.from_arrays(
            values.offsets, inner, type=kind, mask=values.is_null() if values.null_count else None
        )
    if _is_text(kind):
        return _mapped(values, of_text(name))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.nulls(len(values), kind)
    return values


def _sorted(inner: pa.Array, values: pa.ListArray) -> list[list[str] | None]:
    """Return lists of names in the order of what stands for them."""
    lists = pa.ListArray.from_arrays(values.offsets, inner)
    return [
        sorted(each, key=lambda name: (name is None, name)) if valid else None
        for each, valid in zip(lists.to_pylist(), values.is_valid().to_pylist(), strict=True)
    ]


def _mapped(values: pa.Array, change: Callable[[str], str]) -> pa.Array:
    """Change each distinct text once."""
    coded = values.dictionary_encode()
    changed = [change(each) for each in coded.dictionary.to_pylist()]
    return pa.array(changed, values.type).take(coded.indices)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _has_resources(rows: pa.Table) -> bool:
    return {"resource_type", "resource", "name"} <= set(rows.column_names)


def _has_changes(rows: pa.Table) -> bool:
    return {"event", "detail"} <= set(rows.column_names)


def _with_resources(rows: pa.Table, redacted: pa.Table, pseudonyms: Pseudonyms) -> pa.Table:
    """Of rows of settings: a resource is a group or a topic, as its type says; and the names."""
    named = [
        pseudonyms.of(kind, name) if kind in _RESOURCES and name is not None else name
        for kind, name in zip(
            rows["resource_type"].to_pylist(), rows["resource"].to_pylist(), strict=True
        )
    ]
    settings = [
        name if name is None or name in public_settings() else pseudonyms.of(SETTING, name)
        for name in rows["name"].to_pylist()
    ]
    return _with_texts(redacted, {"resource": named, "name": settings})


def _with_texts(rows: pa.Table, columns: Mapping[str, Sequence[str | None]]) -> pa.Table:
    """Return a table with other texts in some of its columns."""
    for column, values in columns.items():
        place = rows.column_names.index(column)
        rows = rows.set_column(place, rows.schema.field(place), pa.array(values, pa.string()))
    return rows


def _has_gaps(rows: pa.Table) -> bool:
    return {"code", "parameters", "words"} <= set(rows.column_names)


def _with_gaps(
    rows: pa.Table, redacted: pa.Table, pseudonyms: Pseudonyms, text: NamesInText
) -> pa.Table:
    """Of rows of gaps: which parameters are names their kinds say, and the words have the same."""
    gaps = [gap_of_row(row).renamed(pseudonyms.of, text.replaced) for row in rows.to_pylist()]
    return _with_texts(
        redacted,
        {
            "parameters": [each.parameters_as_json for each in gaps],
            "words": [each.words for each in gaps],
        },
    )


def names_of_document(document: object, names: Names, field: str = "") -> None:
    """Add the names that a JSON document has."""
    if isinstance(document, Mapping):
        for name, each in document.items():
            names_of_document(each, names, name)
    elif isinstance(document, list | tuple):
        for each in document:
            names_of_document(each, names, field)
    elif isinstance(document, str) and (kind := kind_of(field)) is not None:
        names[kind].add(document)


_INPUT: Final = "INPUT"

WITHHELD: Final = "(redacted)"


@dataclass(frozen=True)
class Redactor:
    """Takes names out of what leaves the company.

    Attributes:
        pseudonyms: For what identifies.
        text: For all other text.
        originals: By pseudonym the name, for what a team says of names itself.
    """

    pseudonyms: Pseudonyms
    text: NamesInText
    originals: Mapping[str, str]

    @classmethod
    def of(
        cls, key: bytes, names: Names, inputs: tuple[str, ...], own_words: frozenset[str]
    ) -> Redactor:
        """Take the names that are known, and the paths of INPUTs.

        Args:
            key: Of the pseudonyms.
            names: By kind.
            inputs: Paths that are names, too.
            own_words: Words of our own sentences, which a name may be.
        """
        pseudonyms = Pseudonyms(key)
        # A path without letters tells nothing: `.`, `..`, `/`.
        paths = {
            str(each): _INPUT
            for path in inputs
            for each in _names_of(path)
            if any(sign.isalpha() for sign in str(each))
        }
        replaced = {**pseudonyms.of_text(names), **paths}
        said = {name for kind, mine in names.items() if is_said(kind) for name in mine}
        text = NamesInText(replaced, own_words, replaced.keys() - said - paths.keys())
        originals = {
            pseudonyms.of(kind, name): name for kind, mine in names.items() for name in mine
        }
        return cls(pseudonyms, text, originals)

    def table(self, name: str, rows: pa.Table) -> pa.Table:
        """Return a table without names, sorted by its key or else by its columns."""
        key = tables()[name].key if name in tables() else ()
        return redacted(rows, self.pseudonyms, self.text, key)

    def parted(self, name: str, rows: PartedTable, folder: str) -> PartedTable:
        """Return a table of a contract that may be too large to be held, without names, sorted.

        Args:
            name: Of the table.
            rows: The table.
            folder: For its rows where they are many; it need not be there.
        """
        if len(rows.parts) == 1 and isinstance(rows.parts[0], pa.Table):
            return PartedTable.held(self.table(name, rows.whole()))
        parts: list[str] = []
        Path(folder).mkdir(parents=True, exist_ok=True)
        for piece in rows.pieces():
            parts.append(f"{folder}/{len(parts)}.parquet")
            pq.write_table(self.table(name, piece), parts[-1])
        return PartedTable.of_contract(name, parts)

    def document(self, document: Any) -> Any:  # noqa: ANN401 - as JSON has it
        """Return a document without names."""
        return redacted_document(document, self.pseudonyms, self.text)

    def pattern(self, kind: str, text: str) -> str:
        """Return what stands for a pattern that a team wrote; `*` stays, a name has its own."""
        if text == "*":
            return text
        name = self.pseudonyms.of(kind, text)
        return name if name in self.originals else self.pseudonyms.of("pattern", text)


def redacted_document(
    document: Any,  # noqa: ANN401 - as JSON has it
    pseudonyms: Pseudonyms,
    text: NamesInText,
    field: str = "",
) -> Any:  # noqa: ANN401
    """Return a document without names.

    Args:
        document: As JSON has it.
        pseudonyms: For fields that identify.
        text: For all other text.
        field: What the document is called in the one around it.
    """
    if isinstance(document, Mapping):
        return {
            _field(field, str(name), pseudonyms): redacted_document(
                each, pseudonyms, text, str(name)
            )
            for name, each in document.items()
        }
    if isinstance(document, list | tuple):
        return [redacted_document(each, pseudonyms, text, field) for each in document]
    if not isinstance(document, str):
        return document
    if is_withheld(field):
        return WITHHELD
    kind = kind_of(field)
    return text.replaced(document) if kind is None else pseudonyms.of(kind, document)


def _field(of: str, name: str, pseudonyms: Pseudonyms) -> str:
    """Return the name of a field: our own, but where fields are named after something."""
    kind = kind_of_fields(of)
    return name if kind is None else pseudonyms.of(kind, name)


def _names_of(location: str) -> tuple[str, ...]:
    """Return what a location may begin with where it is named, or what lies in it."""
    if is_uri(location):
        uri = uri_of(location)
        return location, f"{uri.head}{uri.path}"
    return location, str(Path(location).absolute())
