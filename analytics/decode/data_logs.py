"""The tables of data topics' logs: what their files and indexes say of when they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from analytics.dump.files.data_log_times import data_segments_and_times
from analytics.dump.files.stable_ends import stable_ends
from analytics.workspace import DATA_LOGS, Part, open_location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.dump.files.model import Copy

SEGMENTS_TABLE: Final = f"{DATA_LOGS}/data_segments"
TIMES_TABLE: Final = f"{DATA_LOGS}/data_log_times"
STABLE_TABLE: Final = f"{DATA_LOGS}/data_stable_ends"


def data_log_parts(staging: str, copies: Iterable[Copy]) -> list[Part]:
    """Write `data_segments`, `data_log_times` and `data_stable_ends`, a part each.

    Args:
        staging: Folder of the run.
        copies: As they were found.
    """
    filesystem, root = open_location(staging)
    filesystem.create_dir(root, recursive=True)
    parts = []
    copies = list(copies)
    tables = {
        **dict(zip((SEGMENTS_TABLE, TIMES_TABLE), data_segments_and_times(copies), strict=True)),
        STABLE_TABLE: stable_ends(copies),
    }
    for table, rows in tables.items():
        path = f"{root}/{table.rpartition('/')[2]}.parquet"
        pq.write_table(rows, path, filesystem=filesystem, store_schema=False)
        parts.append(Part(table, path, rows.num_rows))
    return parts
