"""The table ``divergences``: lines of history that did not survive."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.time_columns import TIMESTAMP, times_of
from analytics.workspace import Part, open_location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.dump.files.model import Divergence

TABLE = "history/divergences"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copy", pa.string()),
        ("diverges_at", pa.int64()),
        ("lost_records", pa.int64()),
        ("lost_from_timestamp", TIMESTAMP),
        ("lost_to_timestamp", TIMESTAMP),
        ("lost_leader_epoch", pa.int32()),
        ("surviving_leader_epoch", pa.int32()),
        ("surviving_copy", pa.string()),
        ("elected_at", TIMESTAMP),
        ("election_shown_by", pa.string()),
        ("leaderless_from", TIMESTAMP),
        ("unclean", pa.bool_()),
        ("groups_only_there", pa.list_(pa.field("element", pa.string()))),
    ]
)


def divergences_part(
    staging: str,
    divergences: Sequence[Divergence],
    groups_only_there: Mapping[tuple[str, str, int], Sequence[str]],
) -> Part:
    """Write the table's one part.

    Args:
        staging: Folder of the run.
        divergences: Lines that did not survive.
        groups_only_there: By copy, topic and partition.
    """
    rows = [
        {
            **asdict(each),
            "groups_only_there": groups_only_there.get((each.copy, each.topic, each.partition), []),
        }
        for each in divergences
    ]
    columns = {each.name: _column(each, [row[each.name] for row in rows]) for each in SCHEMA}
    filesystem, root = open_location(staging)
    filesystem.create_dir(root, recursive=True)
    path = f"{root}/divergences.parquet"
    table = pa.Table.from_pydict(columns, schema=SCHEMA)
    pq.write_table(table, path, filesystem=filesystem, store_schema=False)
    return Part(TABLE, path, len(rows))


def _column(each: pa.Field, values: list[Any]) -> pa.Array:
    if each.type == TIMESTAMP:
        return times_of(np.array([-1 if value is None else value for value in values], np.int64))
    return pa.array(values, each.type)
