"""Rows of the table `log_cleaning` as they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.row_formats import Section

_HEADS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "copy": "COPY",
    "verdict": "CLEANER",
    "due_since": "DUE-SINCE",
    "dirty_ratio": "DIRTY",
    "min_dirty_ratio": "MIN-DIRTY",
    "cleanable_bytes": "CLEANABLE",
    "freed_bytes": "WOULD-FREE",
    "overdue_tombstones": "OVERDUE-TOMBSTONES",
    "evidence": "EVIDENCE",
}
_SPARE: Final = ("min_dirty_ratio", "overdue_tombstones", "due_since", "cleanable_bytes")
_PROBLEMS: Final = ("dead", "passed_over", "disabled", "cannot_tell")
_UNSHOWN: Final = ("not_compacted", "nothing_to_clean")
_DECIMALS: Final = 2


def cleaning_section(rows: pa.Table, *, is_for_programs: bool) -> Section:
    """Return the table; people see no logs that there is nothing to say of, and ratios rounded."""
    if not is_for_programs:
        rows = rows.filter(pc.invert(pc.is_in(rows["verdict"], pa.array(_UNSHOWN))))
        place = rows.column_names.index("dirty_ratio")
        rows = rows.set_column(place, "dirty_ratio", pc.round(rows["dirty_ratio"], _DECIMALS))
    problem = pc.is_in(rows["verdict"], pa.array(_PROBLEMS))
    also = [name for name in rows.column_names if name not in _HEADS]
    return Section(
        rows.append_column("is_problem", problem),
        _HEADS,
        also,
        name="log_cleaning",
        key="log_cleaning",
        title="Compaction",
        problem="is_problem",
        spare=_SPARE,
    )


def verdicts_text(rows: pa.Table, meanings: Mapping[str, str]) -> str:
    """Return how many logs have each verdict, and what it means."""
    counts = Counter(rows["verdict"].to_pylist())
    lines = [f"{word} ({counts[word]}): {text}" for word, text in meanings.items() if counts[word]]
    return "\n".join(["Cleaner, copies of logs:", *lines])
