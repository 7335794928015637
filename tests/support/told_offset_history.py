"""The history of offsets without what other tests hold to account: causes and elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from analytics.contracts import TIME, contract_schema
from analytics.replay.graph import needed_for, resolve
from analytics.replay.groups.group_records import KINDS
from analytics.replay.history.partition_history import births
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.losses import WHOLE, Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.offset_history import OfTopics
from analytics.replay.removals.removal_causes import CAUSES
from tests.support.decoded_frames import frames_of

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLES = (*KINDS, "offset_commit", "control_markers")
NO_LOSSES = pl.Schema({"topic": pl.String(), "partition": pl.Int32(), "elected_at": TIME})


def told_offset_history(
    rows: Mapping[str, list[dict[str, Any]]], release: str, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return `offset_history` of decoded rows by table, with no removals told and no elections."""
    topics = pl.DataFrame(schema=contract_schema("topics"))
    given = {
        "cut": frames_of(rows, TABLES),
        "topics": topics,
        "of_topics": OfTopics(births(topics), NO_LOSSES.to_frame()),
        "rules": replay_rules(release),
        "coverage": coverage,
        "removals": pl.DataFrame(schema=CAUSES),
    }
    steps = [step for step in HISTORY if step.output not in given]
    history: pl.DataFrame = resolve(needed_for(steps, ["offset_history"]), given)["offset_history"]
    return history
