"""A workspace whose tables and manifest name nobody: `audit --redact KEYFILE`.

It holds what was replayed and evaluated. Decoded records are left out: their bytes may name anyone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.redaction.documents import redacted_document
from analytics.redaction.pseudonyms import Pseudonyms
from analytics.redaction.tables import Names, names_in, names_of_document, redacted
from analytics.redaction.text import NamesInText
from analytics.tables.decoded_workspace import REDACTED
from analytics.tables.staged_tables import part_of, staged_path
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import FOLDERS, Workspace
from jobs.workspaces.own_words import own_words
from schemas import table, tables
from schemas.identities import is_said

if TYPE_CHECKING:
    from analytics.workspace import Part, Staging

_INPUT: Final = "INPUT"
_KINDS: Final = ("state", "history", "evaluation")


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
    def of(cls, key: bytes, names: Names, inputs: tuple[str, ...]) -> Redactor:
        """Take the names that are known, and the paths of INPUTs."""
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
        text = NamesInText(replaced, own_words(), replaced.keys() - said - paths.keys())
        originals = {
            pseudonyms.of(kind, name): name for kind, mine in names.items() for name in mine
        }
        return cls(pseudonyms, text, originals)

    def table(self, name: str, rows: pa.Table) -> pa.Table:
        """Return a table without names, sorted by its key or else by its columns."""
        key = tables()[name].key if name in tables() else ()
        return redacted(rows, self.pseudonyms, self.text, key)

    def document(self, document: Any) -> Any:  # noqa: ANN401 - as JSON has it
        """Return a document without names."""
        return redacted_document(document, self.pseudonyms, self.text)

    def pattern(self, kind: str, wanted: str) -> str:
        """Return what stands for a pattern that a team wrote; `*` stays, a name has its own."""
        if wanted == "*":
            return wanted
        name = self.pseudonyms.of(kind, wanted)
        return name if name in self.originals else self.pseudonyms.of("pattern", wanted)


def key_in(path: str) -> bytes:
    """Return the key that a file holds.

    Raises:
        InputNotRecognizedError: It is too short to keep names secret.
        InputUnreadableError: It cannot be read.
    """
    try:
        key = Path(path).read_bytes()
        Pseudonyms(key)
    except OSError as error:
        raise InputUnreadableError(f"--redact {path}: {error.strerror or error}") from error
    except ValueError as error:
        hint = "head -c 32 /dev/urandom > KEYFILE makes one"
        raise InputNotRecognizedError(f"--redact {path}: {error}; {hint}") from error
    return key


def redact_into(
    out: str, plain: Workspace, key: bytes, inputs: tuple[str, ...]
) -> tuple[Redactor, dict[str, Any]]:
    """Write a workspace without names; return what takes names out, and its manifest.

    Args:
        out: The folder.
        plain: The workspace with names.
        key: Of the pseudonyms.
        inputs: Paths that are names, too.
    """
    stored, manifest = StoredTables(plain), plain.manifest()
    kept = [name for name, each in tables().items() if each.kind in _KINDS and stored.has(name)]
    names = names_in(rows for name in kept for rows in _batches(stored, name))
    names_of_document(manifest, names)
    redactor = Redactor.of(key, names, inputs)
    said = {**redactor.document(manifest), REDACTED: True}
    staging = Workspace(out).prepare()
    try:
        parts = [_write(staging, name, stored, redactor) for name in kept]
        staging.publish(parts, FOLDERS, said)
    except BaseException:
        staging.discard()
        raise
    return redactor, said


def _batches(stored: StoredTables, name: str) -> Iterator[pa.Table]:
    return stored.batches(name, [column.name for column in table(name).columns])


def _write(staging: Staging, name: str, stored: StoredTables, redactor: Redactor) -> Part:
    filesystem, path = staging.workspace.filesystem, staged_path(staging, name)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    schema = stored.schema(name)
    read = [rows.cast(schema) for rows in _batches(stored, name)]
    # Rows of all batches are sorted together: they came in the order of the names.
    rows = redactor.table(name, pa.concat_tables(read) if read else schema.empty_table())
    with pq.ParquetWriter(path, schema, filesystem=filesystem) as writer:
        writer.write_table(rows)
    return part_of(name, path, rows.num_rows)
