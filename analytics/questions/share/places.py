"""Where rows of one table stand in another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

AFTER_ALL: Final = np.iinfo(np.int64).max
"""A place, an offset or a time after every other."""


def places_in(rows: pa.Table, others: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """Return for each of the others its place among the rows; -1 where it has none.

    Args:
        rows: No two of them have the same keys.
        others: Rows with the same key columns, of types that can be cast to theirs.
        keys: Names of columns without nulls.
    """
    wanted = [rows.schema.field(name) for name in keys]
    given = others.select(list(keys)).cast(pa.schema(wanted))
    named = rows.select(list(keys)).append_column("place", pa.array(np.arange(rows.num_rows)))
    asked = given.append_column("asked", pa.array(np.arange(others.num_rows)))
    joined = asked.join(named, list(keys), join_type="inner")
    found = np.full(others.num_rows, -1)
    found[joined["asked"].to_numpy()] = joined["place"].to_numpy()
    return found
