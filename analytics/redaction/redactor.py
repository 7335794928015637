"""What takes names out of tables, JSON documents and sentences of a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.redaction.pseudonyms import Pseudonyms
from analytics.redaction.tables import Names, redacted
from analytics.redaction.text import NamesInText
from analytics.tables.parted_table import PartedTable
from schemas import tables
from schemas.identities import is_said, is_withheld, kind_of, kind_of_fields

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
            for each in (path, Path(path).absolute())
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
