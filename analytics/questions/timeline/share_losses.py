"""What share groups had on lines of `__share_group_state` that did not survive, read with Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl
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
from analytics.questions.timeline.words import CANNOT_TELL, VERDICTS, verdicts_on
from analytics.replay.dump.assumptions import are_elections_clean, assumed_in
from analytics.replay.log.lines import parsed_time
from analytics.replay.log.losses_at import leading
from analytics.replayed.whole_groups import frame_of
from analytics.workspace import DECODED, DIVERGED
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_TABLES = ("share_snapshot", "share_update")


def share_losses(state: ReplayedWorkspace, until: datetime | None) -> pl.DataFrame:
    """Return what elections took of the state of the share groups asked about, or may have taken.

    Args:
        state: A replayed workspace.
        until: The last instant asked about; None is that of the replay.
    """
    rows = state.tables.read("topics", ["topic", "topic_id"]).to_pylist()
    topics = {row["topic_id"]: row["topic"] for row in rows if row["topic_id"]}
    lines = [_line(state, row) for row in lost_of_topic(state, SHARE_GROUP_STATE)]
    lost = share_state_losses([each for each in lines if each.lost.num_rows], topics)
    lost += share_state_out_of_reach(state, topics)
    found = pl.concat([_wanted(state, pl.DataFrame(lost, VERDICTS, orient="row")), _untold(state)])
    if until is None:
        return found
    return found.filter(pl.col("at").is_null() | (pl.col("at") <= until))


def _wanted(state: ReplayedWorkspace, found: pl.DataFrame) -> pl.DataFrame:
    wanted = state.tables.selection
    groups, topics = (found[name].unique().to_list() for name in ("group_id", "topic"))
    return found.filter(
        pl.col("group_id").is_in(names_wanted(groups, wanted.groups, wanted.exclude_groups)),
        pl.col("topic").is_in(names_wanted(topics, wanted.topics)),
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


def _untold(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return why an election may have taken state unseen, for each share partition it is about."""
    if are_elections_clean(assumed_in(state.manifest)):
        return VERDICTS.to_frame()
    elections = [
        (row["partition"], parsed_time(each["at"]), each["why"])
        for row in leading(state.manifest)
        if row["topic"] == SHARE_GROUP_STATE
        for each in (row.get("unjudged_elections") or ())[-1:]
    ]
    if not elections:
        return VERDICTS.to_frame()
    columns = ["group_id", "topic", "partition", "coordinator_partition"]
    shares = frame_of(state.tables.read("share_partitions", columns))
    names = {"coordinator_partition": pl.Int32(), "at": VERDICTS["at"], "why": pl.String()}
    why = pl.DataFrame(elections, pl.Schema(names), orient="row")
    rows = shares.join(why, "coordinator_partition", maintain_order="left")
    return verdicts_on(
        rows, CANNOT_TELL, "unjudged_election", at=pl.col("at"), reason=pl.col("why")
    )
