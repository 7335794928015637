"""What share groups had on lines of `__share_group_state` that did not survive, read with Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import names_wanted
from analytics.dump.files.model import METADATA_LOG
from analytics.questions.timeline.lost_commits import (
    Row,
    is_committed,
    lacks_of_lines,
    lost_of_topic,
    records_of_line,
)
from analytics.questions.timeline.lost_share_state import (
    COLUMNS,
    LostShareState,
    share_state_losses,
    state_records,
)
from analytics.questions.timeline.share_state_out_of_reach import share_state_out_of_reach
from analytics.questions.timeline.words import CANNOT_TELL, Verdict, verdict_row
from analytics.replay.dump.assumptions import are_elections_clean, assumed_in
from analytics.replay.log.lines import parsed_time
from analytics.replay.log.losses_at import leading
from analytics.workspace import DECODED, DIVERGED
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_TABLES = ("share_snapshot", "share_update")


def share_losses(state: ReplayedWorkspace, until: datetime | None) -> list[Verdict]:
    """Return what elections took of the state of the share groups asked about, or may have taken.

    Args:
        state: A replayed workspace.
        until: The last instant asked about; None is that of the replay.
    """
    rows = state.tables.read("topics", ["topic", "topic_id"]).to_pylist()
    topics = {row["topic_id"]: row["topic"] for row in rows if row["topic_id"]}
    lines = [_line(state, row) for row in lost_of_topic(state, SHARE_GROUP_STATE)]
    found = share_state_losses([each for each in lines if each.lost.num_rows], topics)
    found += share_state_out_of_reach(state, topics)
    found = [each for each in found if _is_wanted(state, each)] + _untold(state)
    return [each for each in found if not (until and each["at"] and each["at"] > until)]


def _is_wanted(state: ReplayedWorkspace, verdict: Verdict) -> bool:
    wanted = state.tables.selection
    return bool(names_wanted([verdict["group_id"]], wanted.groups, wanted.exclude_groups)) and bool(
        names_wanted([verdict["topic"]], wanted.topics)
    )


def _line(state: ReplayedWorkspace, row: Row) -> LostShareState:
    start, own = row["diverges_at"], f"{DIVERGED}/{row['copy']}/{DECODED}"
    is_exact = row["election_shown_by"] == METADATA_LOG
    return LostShareState(
        copy=row["copy"],
        partition=row["partition"],
        shared=_records(state, row, DECODED, pc.field("offset") < start),
        lost=_records(state, row, own, pc.field("offset") >= start),
        elected_at=row["elected_at"],
        elected_after=None if is_exact else row["lost_to_timestamp"],
        is_committed=is_committed(state, row),
        lacks=lacks_of_lines(state, row),
    )


def _records(state: ReplayedWorkspace, row: Row, folder: str, where: pc.Expression) -> pa.Table:
    columns: Sequence[str] = COLUMNS
    return state_records(
        *(records_of_line(state, row, f"{folder}/{name}", columns, where) for name in _TABLES)
    )


def _untold(state: ReplayedWorkspace) -> list[Verdict]:
    """Return why an election may have taken state unseen, for each share partition it is about."""
    if are_elections_clean(assumed_in(state.manifest)):
        return []
    why = {
        row["partition"]: row["unjudged_elections"][-1]
        for row in leading(state.manifest)
        if row["topic"] == SHARE_GROUP_STATE and row.get("unjudged_elections")
    }
    if not why:
        return []
    columns = ["group_id", "topic", "partition", "coordinator_partition"]
    shares = state.tables.read("share_partitions", columns).to_pylist()
    return [
        verdict_row(
            (row["group_id"], row["topic"], row["partition"]),
            CANNOT_TELL,
            at=parsed_time(why[row["coordinator_partition"]]["at"]),
            reason=why[row["coordinator_partition"]]["why"],
        )
        for row in shares
        if row["coordinator_partition"] in why
    ]
