"""The file of what a cluster answered of its groups: rows of `cluster_answers`, as Arrow has them.

It is written as answers come, some groups at a time, and read whole columns at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import ipc

from analytics.dump.files.cluster_answers import ANSWERS

if TYPE_CHECKING:
    Clock = Callable[[], datetime]

_NAMES: Final = tuple(each for each in ANSWERS.names if each not in ("look", "answered_at"))
Place = tuple[str | None, str | None, int | None]
"""Member, topic and partition."""
NOWHERE: Final[Place] = (None, None, None)


@dataclass
class AnswerRows:
    """Rows that were answered together.

    Attributes:
        columns: By name, without `look` and `answered_at`.
    """

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _NAMES})

    def add(
        self,
        kind: str,
        group: str | None,
        name: str,
        value: str | None,
        *,
        at: Place = NOWHERE,
        error: str | None = None,
    ) -> None:
        """Add a row; there is none where nothing, or an empty text, was answered and none refused.

        Args:
            kind: What it is about.
            group: The group.
            name: Of the field.
            value: The answer.
            at: Member, topic and partition, as far as it is about one.
            error: Why there is none.
        """
        if not value and error is None:
            return
        row = (kind, group, *at, name, value, error)
        for column, each in zip(self.columns.values(), row, strict=True):
            column.append(each)


class AnswerWriter:
    """Writes rows of one look at the cluster, each with the time when they were all there."""

    def __init__(self, writer: ipc.RecordBatchFileWriter, clock: Clock, look: int) -> None:
        self._writer, self._clock, self._look = writer, clock, look

    def rows(self) -> AnswerRows:
        """Return rows to be filled."""
        return AnswerRows()

    def write(self, rows: AnswerRows) -> None:
        """Write rows."""
        count = len(rows.columns[_NAMES[0]])
        columns = {
            "look": [self._look] * count,
            "answered_at": [self._clock()] * count,
            **rows.columns,
        }
        batch = pa.RecordBatch.from_pydict(columns, schema=ANSWERS)
        if batch.num_rows:
            self._writer.write_batch(batch)


@contextmanager
def answer_writer(path: Path, clock: Clock, look: int) -> Iterator[AnswerWriter]:
    """Hand over what writes a file of answers."""
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_file(str(path), ANSWERS, options=options) as writer:
        yield AnswerWriter(writer, clock, look)
