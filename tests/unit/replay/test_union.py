"""Rows of several tables become one query, and none is looked through more often than it has to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from analytics.replay.union import union_all


@dataclass(frozen=True)
class Query:
    """Stands for a DataFrame: which tables it holds, and through how many unions the first went."""

    tables: tuple[int, ...]
    depth: int = 0

    def unionByName(self, other: Query, *, allowMissingColumns: bool) -> Query:  # noqa: N802, N803
        assert not allowMissingColumns
        return Query(self.tables + other.tables, max(self.depth, other.depth) + 1)


@pytest.mark.parametrize(("tables", "depth"), [(1, 0), (2, 1), (3, 2), (8, 3), (21, 5)])
def test_all_tables_are_there_once_in_their_order_and_none_lies_deep(
    tables: int, depth: int
) -> None:
    together = union_all(Query((each,)) for each in range(tables))  # type: ignore[misc]
    assert together == Query(tuple(range(tables)), depth)  # type: ignore[comparison-overlap]
