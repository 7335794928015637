"""What a cluster answered of its groups while a snapshot of it was taken: files beside its logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyarrow import ipc

from analytics.dump.files.model import Copy
from analytics.dump.files.storage import ByteSource, storage_of
from analytics.errors import InputUnreadableError
from analytics.locations import join
from analytics.time_columns import TIMESTAMP

ANSWER_FILES: Final = ("cluster-answers-1.arrow", "cluster-answers-2.arrow")
"""Of the first look at the cluster, and of the second, which asks for what differed."""

ANSWERS: Final = pa.schema(
    [
        ("look", pa.int32()),
        ("answered_at", TIMESTAMP),
        ("kind", pa.string()),
        ("group_id", pa.string()),
        ("member_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("field", pa.string()),
        ("value", pa.string()),
        ("error", pa.string()),
    ]
)
"""The table `cluster_answers`, without `copy`."""
_COPIED: Final = pa.schema([*ANSWERS, ("copy", pa.string())])


def answers_of(copies: Iterable[Copy]) -> pa.Table:
    """Return what clusters answered of whose logs copies were fetched: `cluster_answers`.

    A file that cannot be read is one row, with why.
    """
    found = [_COPIED.empty_table()]
    for copy in copies:
        if copy.snapshot is None:
            continue
        for folder in copy.log_dirs:
            for look, name in enumerate(ANSWER_FILES, 1):
                path = join(folder, name)
                if storage_of(path).entry(path) is not None:
                    rows = answers_in_file(path, look)
                    whose = pa.array([copy.name] * rows.num_rows, pa.string())
                    found.append(rows.append_column("copy", whose))
    return pa.concat_tables(found)


def answers_in_file(path: str, look: int) -> pa.Table:
    """Return the rows of a file, without `copy`; where it cannot be read one row with why."""
    try:
        with ByteSource(path) as source:
            rows = ipc.open_file(pa.BufferReader(source.bytes(0, source.size))).read_all()
        return rows.select(ANSWERS.names).cast(ANSWERS)
    except (pa.ArrowException, OSError, ValueError, KeyError, InputUnreadableError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        row = {"look": look, "kind": "look", "field": "look", "error": f"{path}: {why:.200}"}
        return pa.Table.from_pylist([row], ANSWERS)
