"""Look-up by name: record types by either of their names, and every table there is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from schemas.catalog import DECODED_TEMPLATE, all_record_types, written_tables
from schemas.decoded import decoded_table
from schemas.errors import SchemaError
from schemas.model import RecordType, Table


@cache
def record_type(name: str) -> RecordType:
    """Return the record type of that name, Kafka's or the table's: "OffsetCommit", "offset_commit".

    Raises:
        KeyError: There is none.
    """
    for each in all_record_types().values():
        if name in (each.name, each.table):
            return each
    raise KeyError(name)


@cache
def tables() -> Mapping[str, Table]:
    """Return every table's contract by name: decoded, control, state, history, evaluation.

    Raises:
        SchemaError: A file is wrong, or two tables share a name.
    """
    by_name = {
        each.table: decoded_table(each)
        for each in all_record_types().values()
        if each.read == "decode"
    }
    for name, written in written_tables().items():
        if name == DECODED_TEMPLATE:
            continue
        if name in by_name:
            raise SchemaError("a decoded table has that name", file=f"tables/{name}.json")
        by_name[name] = written
    return MappingProxyType(by_name)


def table(name: str) -> Table:
    """Return the contract of the table of that name.

    Raises:
        KeyError: There is none.
    """
    return tables()[name]
