"""A workspace whose tables and manifest name nobody: `audit --redact KEYFILE`.

It holds what was replayed and evaluated. Decoded records are left out: their bytes may name anyone.
The words of groupscope's own sentences stay, as its texts have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.errors import AbsentFileError, InputNotRecognizedError, InputUnreadableError
from analytics.locations import make_folder
from analytics.redaction.redactor import Redactor, names_in, names_of_document
from analytics.redaction.text import Pseudonyms
from analytics.side_files import read_bytes
from analytics.tables.stored_tables import StoredTables, part_of, staged_path
from analytics.version import PACKAGES
from analytics.workspace import FOLDERS, Workspace
from schemas import table, tables

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from analytics.workspace import Part, Staging
    from schemas.manifest import Manifest

_KINDS: Final = ("state", "history", "evaluation")

_TEXT: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_WORD: Final = re.compile(r"[\w.-]*\w")
_NUMBERED: Final = re.compile(r"[^\W\d_].*[-_.]\d+$")
_RUN: Final = re.compile(r"[^\W_]+")


def key_in(path: str) -> bytes:
    """Return the key that a file holds.

    Raises:
        InputNotRecognizedError: It is too short to keep names secret.
        InputUnreadableError: It cannot be read.
    """
    try:
        key = read_bytes(path)
        Pseudonyms(key)
    except (AbsentFileError, InputUnreadableError) as error:
        raise type(error)(f"--redact {error}") from error
    except ValueError as error:
        hint = "head -c 32 /dev/urandom > KEYFILE makes one"
        raise InputNotRecognizedError(f"--redact {path}: {error}; {hint}") from error
    return key


def redact_into(
    out: str, plain: Workspace, key: bytes, inputs: tuple[str, ...]
) -> tuple[Redactor, Manifest]:
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
    # What was gone on from may lie in another place than the one that was named.
    paths = (*inputs, *([manifest["resumed"]["resumed_from"]] if "resumed" in manifest else ()))
    redactor = Redactor.of(key, names, paths, own_words())
    said: Manifest = redactor.document(manifest)
    said["redacted"] = True
    # Of decoded tables, which are left out.
    said.pop("decoded_pieces", None)
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
    make_folder(filesystem, path.rpartition("/")[0])
    schema = stored.schema(name)
    read = [rows.cast(schema) for rows in _batches(stored, name)]
    # Rows of all batches are sorted together: they came in the order of the names.
    rows = redactor.table(name, pa.concat_tables(read) if read else schema.empty_table())
    with pq.ParquetWriter(path, schema, filesystem=filesystem) as writer:
        writer.write_table(rows)
    return part_of(name, path, rows.num_rows)


@cache
def own_words() -> frozenset[str]:
    """Return all words in texts of the packages, in lower case: a name may be one of them."""
    said = {
        text
        for package in PACKAGES
        for source in _sources(files(package))
        for text in _TEXT.findall(source.read_text(encoding="utf-8"))
    }
    words = {
        word.lower() for text in said for words in (_WORD, _RUN) for word in words.findall(text)
    }
    # Examples have names with numbers in them, `broker-1`, and sentences have not.
    return frozenset(word for word in words if _NUMBERED.search(word) is None)


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _sources(each)
        elif each.name.endswith((".py", ".json")):
            yield each
