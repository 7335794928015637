"""Whether a stored table has the columns of its contract, in order and by type."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from analytics.contracts import ARROW_TYPES


def wrong_columns(schema: pa.Schema, types: Mapping[str, str]) -> list[str]:
    """Return what is wrong with each column, by its name; nothing where all is well.

    Args:
        schema: As stored.
        types: Spark's type by column, in order; of a list or struct only that it is one counts.
    """
    wrong = [f"{name} is missing" for name in types if name not in schema.names]
    wrong += [f"{name} is unknown" for name in schema.names if name not in types]
    if not wrong and schema.names != list(types):
        wrong.append("columns are in another order")
    for name, said in types.items():
        if name in schema.names and not _is(schema.field(name).type, said):
            wrong.append(f"{name} is {schema.field(name).type}, not {said}")
    return wrong


def _is(stored: pa.DataType, type_name: str) -> bool:
    if type_name.startswith("array"):
        return bool(pa.types.is_list(stored) or pa.types.is_large_list(stored))
    if type_name.startswith("struct"):
        return bool(pa.types.is_struct(stored))
    if type_name == "string":
        return bool(pa.types.is_string(stored) or pa.types.is_large_string(stored))
    return bool(stored == ARROW_TYPES[type_name])
