"""Records of groups as numbers: which group, which key and which kind each row is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.codes import dense
from analytics.replay.groups.columns import COMMIT, CREATES, FAMILY_OF, ROLE_OF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

NONE = -1
"""No row; less than any."""


@dataclass(frozen=True)
class CodedLog:
    """Rows of `RECORDS`, those of a group in the order of their offsets.

    So of two rows of a group the one with the greater number is the later record.

    Attributes:
        rows: The rows.
        group: Of each row, its group; a name in two partitions is two groups.
        key: Of each row, what Kafka's log cleaner goes by: group, kind and member.
        member: Of each row, the member it is about; null is one of them.
        kind: Of each row, its place in `KINDS`, or `COMMIT`.
        is_value: Of each row, whether it is neither a tombstone nor a commit.
        is_tombstone: Of each row.
        groups: How many groups there are.
        keys: How many keys there are.
    """

    rows: pa.Table
    group: Numbers
    key: Numbers
    member: Numbers
    kind: Numbers
    is_value: Flags
    is_tombstone: Flags
    groups: int
    keys: int

    @property
    def family(self) -> Numbers:
        """Of each row, the number of its type of group."""
        found: Numbers = FAMILY_OF[self.kind]
        return found

    def is_of(self, role: str) -> Flags:
        """Of each row, whether it is in a role."""
        found: Flags = np.equal(ROLE_OF, role)[self.kind]
        return found

    @property
    def makes_group(self) -> Flags:
        """Of each row, whether it makes the group where there is none."""
        found: Flags = CREATES[self.kind] & self.is_value
        return found


def coded(rows: pa.Table) -> CodedLog:
    """Number what rows of `RECORDS` are about."""
    rows = rows.combine_chunks()
    kind = numbers(rows.column("kind"))
    group, groups = dense(
        numbers(rows.column("coordinator_partition")), _words(rows.column("group_id"))
    )
    member = _words(rows.column("member_id"))
    key, keys = dense(group, kind, member)
    is_tombstone = flags(rows.column("is_tombstone"))
    is_value = ~is_tombstone & (kind != COMMIT)
    return CodedLog(rows, group, key, member, kind, is_value, is_tombstone, groups, keys)


def numbers(column: pa.ChunkedArray | pa.Array, null: int = NONE) -> Numbers:
    """Return numbers, another one for null."""
    wide = pc.fill_null(column.cast(pa.int64()), null)
    found: Numbers = wide.to_numpy(**_copying(column))
    return found


def flags(column: pa.ChunkedArray | pa.Array) -> Flags:
    """Return truths; null is false."""
    found: Flags = pc.fill_null(column, fill_value=False).to_numpy(**_copying(column))
    return found


def last_row(code: Numbers, where: Flags, size: int) -> Numbers:
    """Return by code its last row among those where something holds, else `NONE`."""
    rows = np.flatnonzero(where)
    found = np.full(size, NONE, np.int64)
    # Of what is written to one place the last stays.
    found[code[rows]] = rows
    return found


def first_row(code: Numbers, where: Flags, size: int) -> Numbers:
    """Return by code its first row among those where something holds, else `NONE`."""
    rows = np.flatnonzero(where)[::-1]
    found = np.full(size, NONE, np.int64)
    found[code[rows]] = rows
    return found


def _words(column: pa.ChunkedArray) -> Numbers:
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return numbers(encoded.indices)


def _copying(column: pa.ChunkedArray | pa.Array) -> dict[str, bool]:
    return {} if isinstance(column, pa.ChunkedArray) else {"zero_copy_only": False}
