"""What share groups have left to deliver, what holds them up, and whether their state is sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from analytics.contracts import table_of_frame
from analytics.gaps.gap import Gap, gap
from analytics.gaps.group_selection import select_groups
from analytics.gaps.internal_topics import partition_count
from analytics.questions.answer import Answer
from analytics.questions.lag.data_logs import EXACT, data_logs
from analytics.questions.question import Question
from analytics.questions.share.backlog import (
    NO_END,
    ShareQuestion,
    ShareTables,
    evaluate_share,
)
from analytics.questions.share.limits import limits_of
from analytics.questions.share.open_transactions import STABLE_ENDS
from analytics.questions.share.records import share_records, steps_of
from analytics.questions.share.settings import settings_found
from analytics.questions.share.stall_history import named_stalls, stall_history
from analytics.questions.share.state_topic import (
    StateCoverage,
    gaps_of_all_groups,
    gaps_of_state,
    prunable,
    with_possible_claims,
)
from analytics.questions.share.status import BY, CANNOT_TELL, sums_of
from analytics.replay.log.log_times import clocks_of_topic
from analytics.replay.log.row_columns import arrow_rows
from analytics.replayed.end_offsets import EndOffsetSamples, end_offset_samples, end_offsets_at
from analytics.replayed.replayed_workspace import instant_of, known_coverage
from analytics.replayed.topics import topics_gone, with_names
from analytics.replayed.whole_groups import frame_of
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from schemas.share_rules import limit_verdicts, share_rules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from analytics.gaps.group_selection import GroupSelection
    from analytics.questions.lag.data_logs import DataLogs
    from analytics.questions.share.settings import ShareSettings
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.share_rules import ShareRules

PARTITION: Final = "partition"
SUMS, AS_OF, NO_END_REASON = "sums", "as_of", "no_end"
_MOST_NAMED: Final = 5
_MINUTE: Final = 60_000
_PLACE: Final = ["topic", "partition"]


@dataclass(frozen=True)
class BacklogSettings:
    """What of share groups is asked.

    Attributes:
        by: What the backlog is added up by: partition (not at all), group or topic.
        end_offsets: A file that says where logs ended.
    """

    by: str = PARTITION
    end_offsets: str | None = None


def share(state: ReplayedWorkspace, asked: BacklogSettings) -> Answer:
    """Return the backlog of share groups, what blocks it, and how sound their state is.

    Its figures are `sums` where `by` asks for them, `as_of`, the instant, and `no_end`, the reason
    of rows for which it is not known where the log ends.

    Raises:
        InputUnreadableError: A file or a setting is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    rules = share_rules(state.settings.from_file.thresholds("share"))
    selected = select_groups(state, "share", with_offsets=False)
    settings = settings_found(state.release, frame_of(state.tables.read("configs")), state.settings)
    gaps = gaps_of_state(state)
    shares, unnamed = with_names(state.tables.read("share_partitions"))
    made = _made(
        state, selected, frame_of(shares), settings.settings, rules, asked.end_offsets, gaps
    )
    tables = {name: table_of_frame(name, rows) for name, rows in made.items()}
    rows = made["share_backlog"]
    groups = selected.without_missing(rows["group_id"].unique())
    sums = {SUMS: arrow_rows(sums_of(rows, asked.by, rules))} if asked.by in BY else {}
    return Answer(
        tables,
        groups,
        tuple(_doubts(rows, groups, gaps, state)),
        warnings=(*settings.findings, *unnamed),
        summary={
            "settings": list(settings.said),
            "findings": list(settings.findings),
            "statuses": dict(rules.statuses),
            "fault_words": dict(rules.faults),
            "step_verdicts": dict(rules.step_verdicts),
            "limit_verdicts": dict(limit_verdicts()),
        },
        figures={**sums, AS_OF: instant_of(state), NO_END_REASON: NO_END},
    )


def _made(
    state: ReplayedWorkspace,
    selected: GroupSelection,
    shares: pl.DataFrame,
    settings: ShareSettings,
    rules: ShareRules,
    end_offsets: str | None,
    gaps: Mapping[int, str],
) -> dict[str, pl.DataFrame]:
    """Return the tables by name."""
    tables, as_of = state.tables, instant_of(state)
    chosen = frame_of(selected.rows)
    groups = pl.concat([chosen["group_id"], shares["group_id"]]).unique()
    topics = pa.chunked_array([shares["topic"].unique().to_arrow().cast(pa.string())])
    is_wanted = pl.col("topic").is_in(state.topics_wanted(topics).to_pylist())
    asked = with_possible_claims(shares.filter(is_wanted), state)
    records = share_records(state, groups, is_state_whole=not gaps)
    logs, coverage = data_logs(state), known_coverage(state)
    samples = [end_offset_samples(state, end_offsets, as_of), logs.samples(as_of)]
    clocks = clocks_of_topic(coverage.clocks, SHARE_GROUP_STATE)
    found = evaluate_share(
        ShareQuestion(
            ShareTables(
                asked,
                frame_of(tables.read("share_batches")),
                chosen,
                frame_of(tables.read("assignments", ["group_id", "kind", "topic_id", "partition"])),
                records.phases,
                records.transactions,
                frame_of(logs.stable.select(STABLE_ENDS.names())),
            ),
            records.log,
            _ends(state, end_offsets, logs, as_of),
            EndOffsetSamples.of(pa.concat_tables(samples)),
            pl.Series(topics_gone(state), dtype=pl.String),
            settings,
            as_of,
            rules,
            StateCoverage(partition_count(state, SHARE_GROUP_STATE), gaps),
            clocks,
            clocks_of_topic(coverage.clocks, CONSUMER_OFFSETS),
        )
    )
    topics = frame_of(StoredTables(tables.workspace).read("topics"))
    stalls = stall_history(
        records.whole_log,
        round(rules.stalled.minutes * _MINUTE),
        round(as_of.timestamp() * 1000),
        gaps,
        clocks,
    )
    lacking = gaps_of_all_groups(state.manifest, gaps)
    made = {
        "share_backlog": found.rows,
        "share_delivery_counts": found.delivery_counts,
        "share_archived_ranges": found.archived,
        "share_faults": found.faults,
        "share_stalls": named_stalls(stalls, topics),
        "share_prunable": prunable(records.state, topics, lacking),
    }
    made |= {
        "share_steps": steps_of(records, rules, state, coverage),
        "share_limits": limits_of(state, selected, found.rows),
    }
    return {name: made[name] for name in SHARE.tables}


def _ends(
    state: ReplayedWorkspace, end_offsets: str | None, logs: DataLogs, as_of: datetime
) -> pl.DataFrame:
    """Return where logs end; before the end of a dump time indexes tell some of it exactly."""
    given = frame_of(end_offsets_at(state, end_offsets))
    if state.is_end:
        return given
    indexed = frame_of(logs.ends_at(as_of)).filter(pl.col("log_end_bound") == EXACT)
    return pl.concat([given, indexed.join(given, _PLACE, "anti").select(given.columns)])


def _doubts(
    rows: pl.DataFrame, groups: GroupSelection, gaps: Mapping[int, str], state: ReplayedWorkspace
) -> list[Gap]:
    """Return what cannot be told of share partitions, each reason once with how often."""
    lost = rows.filter(pl.col("status") == CANNOT_TELL)
    why = pl.coalesce("missing", "reason", pl.lit("not known")).alias("why")
    unknown = (
        gap("share_state_unknown", share_partitions=count, why=reason)
        for reason, count in lost.group_by(why).agg(pl.len()).iter_rows()
    )
    found = sorted(unknown, key=lambda each: each.words)
    if not gaps or state.tables.selection.topics:
        return found
    # What the group records do not name (4.0 names nothing) may have been in what is missing.
    without = set(groups.rows["group_id"].to_pylist()) - set(rows["group_id"])
    listed = "; ".join(gaps[number] for number in sorted(gaps)[:_MOST_NAMED])
    return [
        *found,
        *(
            gap("share_state_may_lack", group_id=group, topic=SHARE_GROUP_STATE, why=listed)
            for group in sorted(without)
        ),
    ]


SHARE: Final = Question(
    name="share",
    needs=(
        *("groups", "members", "assignments", "topics", "configs", "partition_leaders"),
        *("share_partitions", "share_batches"),
    ),
    tables=(
        *("share_backlog", "share_delivery_counts", "share_archived_ranges", "share_faults"),
        *("share_steps", "share_limits", "share_stalls", "share_prunable"),
    ),
    settings=BacklogSettings,
    answer=share,
)
