"""What `restore` says on stdout: one row a group, and why offsets were refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.quantities import count
from reports.row_formats import Section, Text, render, rendered

GROUP_HEADS = {
    "group_id": "GROUP",
    "restore": "RESTORE",
    "unchanged": "UNCHANGED",
    "refused": "REFUSED",
    "present_state": "PRESENT-STATE",
    "file": "FILE",
    "note": "NOTE",
}
OFFSET_HEADS = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "verdict": "VERDICT",
    "committed_offset": "NEW-OFFSET",
    "present_offset": "PRESENT-OFFSET",
    "difference": "DIFFERENCE",
    "reason": "REASON",
    "detail": "DETAIL",
}
_SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("restore", pa.int64()),
        ("unchanged", pa.int64()),
        ("refused", pa.int64()),
        ("present_state", pa.string()),
        ("file", pa.string()),
        ("note", pa.string()),
    ]
)
VERDICTS = ("restore", "unchanged", "refused")


def render_plan(
    groups: Sequence[Mapping[str, Any]],
    plan: pa.Table,
    output_format: str,
    said: Mapping[str, Any],
    *,
    with_offsets: bool,
) -> Text:
    """Return the summary in one of the formats.

    Args:
        groups: One a group, with the names of `GROUP_HEADS`.
        plan: As `analytics.questions.restore.plan` makes it.
        output_format: ``text``, ``json``, ``csv`` or ``markdown``.
        said: `as_of`, `input` and what else the JSON object has beside `counts` and `rows`.
        with_offsets: Every offset is shown to people too; programs always get them.
    """
    by_group = Section(
        _kind(pa.Table.from_pylist(list(groups), schema=_SCHEMA), "group"),
        GROUP_HEADS,
        ("kind",),
        name="groups",
    )
    by_offset = Section(_kind(plan, "offset"), OFFSET_HEADS, ("kind",), name="offsets")
    counts = counts_of(plan)
    if output_format in ("json", "csv"):
        return rendered([by_group, by_offset], output_format, {**said, "counts": counts})
    reasons = counts["reasons"]
    refusals = Section(
        pa.table({"reason": list(reasons), "offsets": list(reasons.values())}),
        {"reason": "REFUSED-BECAUSE", "offsets": "OFFSETS"},
        name="refusals",
    )
    is_asked = getattr(output_format, "table", None) == by_offset.name
    sections = [
        *([by_group] if groups else []),
        *([by_offset] if with_offsets or is_asked else []),
        *([refusals] if reasons else []),
    ]
    return "\n\n".join([*filter(None, [render(sections, output_format, said)]), in_words(counts)])


def counts_of(plan: pa.Table) -> dict[str, Any]:
    """Return how many offsets have which verdict, and were refused for which reason."""
    verdicts = dict.fromkeys(VERDICTS, 0)
    for each in pc.value_counts(plan["verdict"].combine_chunks()).to_pylist():
        verdicts[each["values"]] = each["counts"]
    words = plan["reason"].drop_null().combine_chunks()
    single = pc.list_flatten(pc.split_pattern(words, "; "))
    reasons = {each["values"]: each["counts"] for each in pc.value_counts(single).to_pylist()}
    return {**verdicts, "reasons": dict(sorted(reasons.items()))}


def in_words(counts: Mapping[str, Any]) -> str:
    """Return the verdicts in one line."""
    return (
        f"{count(counts['restore'], 'offset')} to give back, "
        f"{counts['unchanged']:,} there already, {counts['refused']:,} refused"
    )


def _kind(rows: pa.Table, name: str) -> pa.Table:
    return rows.append_column("kind", pa.chunked_array([pa.repeat(name, rows.num_rows)]))
