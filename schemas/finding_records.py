"""Where the records lie that findings rest on: joins with tables that have their positions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from schemas.model import SchemaError

LOCATION: Final = ("copy", "segment", "batch_position")
"""Columns of a table that says where in which file a record lies."""
FIRST, LAST = "first", "last"

_FILE = "rules/finding_records.json"


@dataclass(frozen=True)
class RecordSource:
    """How one kind of record is found.

    Attributes:
        name: What rules call it.
        about: Which record it is, in a sentence.
        table: The table that has its position.
        on: By column of that table, the column of a rule's rows that is the same.
        log: The topic that the record is in.
        partition: The column with the partition of that topic.
        offset: The column with its offset.
        take: Of several records the `first` or the `last` counts.
        at: The column with the time it was written, where the table has one.
        located_by: A table that tells copy, segment and batch of a record by partition, offset and
            group; None where `table` does.
    """

    name: str
    about: str
    table: str
    on: Mapping[str, str]
    log: str
    partition: str = "coordinator_partition"
    offset: str = "record_offset"
    take: str = LAST
    at: str | None = None
    located_by: str | None = None


@cache
def record_sources() -> Mapping[str, RecordSource]:
    """Return all of them, by name.

    Raises:
        SchemaError: The file is not what it has to be.
    """
    text = files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    return {name: record_source(name, each) for name, each in json.loads(text).items()}


def record_source(name: str, document: Mapping[str, Any]) -> RecordSource:
    """Return one of a file.

    Raises:
        SchemaError: Something is missing, unknown or not allowed there.
    """
    try:
        source = RecordSource(name=name, **document)
    except TypeError as error:
        raise SchemaError(f"record {name}: {error}") from error
    if source.take not in {FIRST, LAST}:
        raise SchemaError(f"record {name}: take is {source.take!r}, not {FIRST} or {LAST}")
    return source
