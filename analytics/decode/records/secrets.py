"""Secrets of the metadata log: values of sensitive settings, and bytes that may hold some.

A ``ConfigRecord`` has passwords as they were given; Kafka declares such settings as of the type
PASSWORD (``ConfigDef.Type``). They are withheld before anything is written. Nobody knows what is in
records that cannot be read: their bytes are withheld, too.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from schemas import record_types
from schemas.config_values import WITHHELD, sensitive_settings

if TYPE_CHECKING:
    from schemas.model import RecordType


def without_secrets(kind: RecordType, value: pa.StructArray) -> pa.StructArray:
    """Return the values of a record type without those of sensitive settings.

    Args:
        kind: The record type; its fields say by which other field they are withheld.
        value: Its column `value`.
    """
    withheld = [each for each in kind.value.fields if each.withheld_by is not None]
    if not withheld:
        return value
    columns = {field.name: value.field(field.name) for field in value.type}
    names = {each.name: each.column for each in kind.value.fields}
    for each in withheld:
        setting = columns[names[each.withheld_by or ""]]
        is_sensitive = pc.match_substring_regex(setting, sensitive_settings())
        is_secret = pc.and_(
            pc.fill_null(is_sensitive, fill_value=False), columns[each.column].is_valid()
        )
        columns[each.column] = pc.if_else(is_secret, WITHHELD, columns[each.column])
    return pa.StructArray.from_arrays(
        list(columns.values()), fields=list(value.type), mask=value.is_null()
    )


@cache
def may_hold_secrets(topic: str) -> bool:
    """Return whether records of a topic may hold secrets: their bytes are not kept."""
    return any(
        kind.read == "secret" or any(each.withheld_by for each in kind.value.fields)
        for kind in record_types(topic).values()
    )


def without_bytes(detail: pa.Array, lengths: pa.Array) -> pa.Array:
    """Return details of undecoded rows that say how many bytes of each were withheld.

    Args:
        detail: In words; may be null.
        lengths: Of the value in bytes; negative or null where there is none.
    """
    counted = pc.binary_join_element_wise(
        pc.cast(lengths, pa.string()), " bytes withheld: they may hold secrets", ""
    )
    # Joined with nulls skipped, rows without any word would be dropped (Arrow 26).
    words = pc.coalesce(pc.binary_join_element_wise(detail, counted, "; "), counted)
    return pc.if_else(pc.fill_null(pc.greater(lengths, 0), fill_value=False), words, detail)
