"""Why offsets were deleted, of decoded rows by table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from analytics.contracts import contract_schema
from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.losses import WHOLE, Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.metadata_log import FIRST_TABLES, beginning
from analytics.replay.removals.removal_causes import (
    Around,
    causes_in_history,
    removed_and_times,
)
from analytics.replay.removals.removed_offsets import topic_purges
from analytics.replay.removals.time_bounds import time_bounds
from tests.support.commit_frames import decoded_rows, ended_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.replay.metadata_log import Beginning

Rows = dict[str, list[dict[str, Any]]]


def beginning_of(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> Beginning:
    """How the metadata log begins."""
    return beginning({name: decoded_rows(name, rows.get(name, [])) for name in FIRST_TABLES})


def told_removals(
    rows: Rows,
    release: str,
    topics: Sequence[Mapping[str, Any]] = (),
    coverage: Coverage = WHOLE,
) -> dict[int, tuple[str, str]]:
    """Cause and confidence by the offset of the tombstone."""
    whole = {"control_markers": [], "offset_commit": [], **rows}
    decoded = {name: decoded_rows(name, rows.get(name, [])) for name in KINDS}
    rules = replay_rules(release)
    removed, said = removed_and_times(ended_rows(whole, release), decoded, rules)
    known = pl.DataFrame(list(topics), contract_schema("topics"))
    causes = causes_in_history(
        removed,
        Around(time_bounds([said]), topic_purges(removed, known)),
        known,
        beginning_of(rows),
        rules,
        present=coverage.data_topics,
        coverage=coverage,
    )
    told = causes.select("record_offset", "cause", "confidence").rows()
    return {offset: (cause, confidence) for offset, cause, confidence in told}
