"""Findings of two audits: which are new, still there, or gone."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

NEW: Final = "new"
STILL: Final = "still there"
NOT_THERE_NOW: Final = "gone"


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


def _ids(findings: pa.Table) -> pa.Array:
    return findings["finding_id"].combine_chunks()
