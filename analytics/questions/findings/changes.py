"""Findings of two audits: which are new, still there, or gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_schema
from analytics.engine.part_runs import PartAnswer, PartRunner
from analytics.questions.findings.found import WORST_FIRST
from analytics.replay.log.arrow_rows import arrow_rows, polars_rows
from analytics.replayed.whole_groups import GroupRows, group_parts, parts_for
from analytics.tables.parted_table import Order, PartedTable

NEW: Final = "new"
STILL: Final = "still there"
NOT_THERE_NOW: Final = "gone"
AT_ONCE: Final = 200_000
"""So many findings of both audits are looked at together, about: they have long texts."""

_ID: Final = "finding_id"
_NOW, _BEFORE, _CHANGED = "now", "before", "changed"


def with_changes(findings: pa.Table, before: pa.Table) -> pa.Table:
    """Return findings with `change`: `new` or `still there`; those that are `gone` come last.

    Args:
        findings: Rows of `findings`.
        before: Those of the earlier audit.
    """
    was_there = pc.is_in(findings["finding_id"], value_set=_ids(before))
    gone = before.filter(pc.invert(pc.is_in(before["finding_id"], value_set=_ids(findings))))
    now = findings.append_column("change", pc.if_else(was_there, STILL, NEW))
    then = gone.append_column("change", pa.repeat(NOT_THERE_NOW, gone.num_rows))
    return pa.concat_tables([now, then.select(now.column_names)], promote_options="permissive")


def changes_in_parts(findings: PartedTable, before: PartedTable, runner: PartRunner) -> PartedTable:
    """Return `with_changes` of tables of any size: some findings are looked for at a time.

    Args:
        findings: Rows of `findings`.
        before: Those of the earlier audit.
        runner: Makes parts.
    """
    rows = {
        name: GroupRows(map(polars_rows, each.pieces()), pl.col(_ID))
        for name, each in ((_NOW, findings), (_BEFORE, before))
    }
    parts = parts_for(findings.num_rows + before.num_rows, AT_ONCE)
    with group_parts(rows, parts, runner.folder) as reads:
        return runner.run(_changes_of_part, reads, {_CHANGED: NOW_FIRST}).tables[_CHANGED]


def _changes_of_part(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    now, before = (arrow_rows(rows[each]) for each in (_NOW, _BEFORE))
    return PartAnswer({_CHANGED: polars_rows(with_changes(now, before))})


def kept_changes(changes: PartedTable) -> PartedTable:
    """Return the table `finding_changes`.

    Args:
        changes: As `changes_in_parts` returns them.
    """
    schema = arrow_schema("finding_changes")
    if len(changes.parts) == 1 and isinstance(changes.parts[0], pa.Table):
        return PartedTable.held(changes.whole().select(schema.names).cast(schema))
    # Its columns do not tell its order: what has a condition is written into one file, in order.
    return replace(changes, schema=schema, condition=pl.col("change").is_not_null())


def _now_first(rows: pl.DataFrame) -> pl.DataFrame:
    is_gone = pl.col("change") == NOT_THERE_NOW
    return WORST_FIRST.sort(rows).sort(is_gone, maintain_order=True)


NOW_FIRST: Final = Order(("change", *WORST_FIRST.columns), _now_first)
"""The order of changes: that of findings; those that are gone come last."""


def _ids(findings: pa.Table) -> pa.Array:
    return findings["finding_id"].combine_chunks()
