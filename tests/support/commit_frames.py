"""Commits and markers of decoded rows, as what follows commits takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from analytics.decode.source import table_schema
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.commit_rows import commit_rows, marker_rows
from analytics.replay.offsets.effective_commits import ended_commits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def decoded_rows(table: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of a decoded table; what a row does not name is null."""
    found = pl.from_arrow(pa.Table.from_pylist(list(rows), table_schema(table)))
    assert isinstance(found, pl.DataFrame)
    return found


def ended_rows(rows: Mapping[str, Iterable[Mapping[str, Any]]], release: str) -> pl.DataFrame:
    """Commits of decoded rows by table, with how their transactions ended."""
    commits = commit_rows(decoded_rows("offset_commit", rows["offset_commit"]))
    markers = marker_rows(decoded_rows("control_markers", rows["control_markers"]))
    return ended_commits(commits, markers, replay_rules(release))
