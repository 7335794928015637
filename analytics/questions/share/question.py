"""What share groups have left to deliver, what holds them up, and whether their state is sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import arrow_rows, in_key_order, polars_rows, table_of_frame
from analytics.decode.selection import names_wanted
from analytics.engine.part_runs import PartAnswer, PartAnswers
from analytics.gaps.gap import Gap, gap
from analytics.gaps.group_selection import HOMES, select_groups
from analytics.gaps.internal_topics import partition_count
from analytics.questions.question import Answer, Question, check_choice
from analytics.questions.share.backlog import (
    NO_END,
    ShareQuestion,
    ShareTables,
    evaluate_share,
    worst_first,
)
from analytics.questions.share.faults import FAULTS, faults_in_order
from analytics.questions.share.held_up import STABLE_ENDS
from analytics.questions.share.limits import SeenOfSome, limit_settings, limits_of, seen_of
from analytics.questions.share.settings import settings_found
from analytics.questions.share.share_log import HOME, KEY
from analytics.questions.share.stall_history import longest_first, named_stalls, stall_history
from analytics.questions.share.state_topic import (
    StateCoverage,
    StateLogs,
    count_of_rows,
    gaps_of_all_groups,
    gaps_of_state,
    holders,
    known_logs,
    log_starts,
    open_transactions_at,
    prunable,
    rows_of_groups,
    share_records,
    state_places,
    steps_of,
    with_possible_claims,
)
from analytics.questions.share.status import BY, CANNOT_TELL, parts_of_sums, summed, sums_in_order
from analytics.questions.share.steps import steps_in_order
from analytics.replay.log.log_times import clocks_of_topic
from analytics.replayed.data_logs import EXACT, data_logs
from analytics.replayed.end_offsets import (
    EndOffsetSamples,
    end_offset_samples,
    end_offsets_at,
    ends_statement,
)
from analytics.replayed.records import Records
from analytics.replayed.replayed_workspace import instant_of, known_coverage
from analytics.replayed.topics import topics_gone, with_names
from analytics.replayed.whole_groups import group_parts, parts_for
from analytics.tables.parted_table import Order, PartedTable, PartedTables
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from schemas.share_rules import limit_verdicts, share_rules

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.gaps.group_selection import GroupSelection
    from analytics.questions.share.group_pictures import KnownLogs
    from analytics.questions.share.limits import LimitSettings
    from analytics.questions.share.settings import ShareSettings
    from analytics.questions.share.share_log import ShareLog
    from analytics.replayed.data_logs import DataLogs
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.share_rules import ShareRules

PARTITION, TOPIC = "partition", "topic"
AT_ONCE: Final = 300_000
"""So many rows of whole groups are looked at together, about: each record holds many ranges."""
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

    def __post_init__(self) -> None:
        """Refuse what nothing is added up by.

        Raises:
            SettingRefusedError: `by` is no such word.
        """
        check_choice("by", self.by, (PARTITION, *BY))


def share(state: ReplayedWorkspace, asked: BacklogSettings) -> Answer:
    """Return the backlog of share groups, what blocks it, and how sound their state is.

    Its figures are `sums` where `by` asks for them, `as_of`, the instant, and `no_end`, the reason
    of rows for which it is not known where the log ends.

    Raises:
        InputUnreadableError: A file or a setting is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    rules = share_rules(state.settings.from_file.thresholds("share"))
    selected = select_groups(state, "share", with_offsets=False, columns=HOMES)
    configs = polars_rows(state.tables.read("configs"))
    settings = settings_found(state.release, configs, state.settings)
    limits = limit_settings(configs, state.settings)
    records = Records(state)
    of_all = _known_of_all(state, asked, settings.settings, rules, records, selected, limits)
    made = _made_in_parts(of_all, records)
    tables, parts = dict(made.tables), made.sums
    sums = tables.pop(SUMS, None)
    if asked.by == TOPIC:
        added = summed([each.sums for each in parts if each.sums is not None], TOPIC, rules)
        sums = PartedTable.held(arrow_rows(added))
    held = {
        "share_limits": limits_of(state, selected, limits, [each.evidence for each in parts]),
        "share_prunable": prunable(
            [each.holders for each in parts],
            state_places(records, of_all.logs),
            of_all.topics,
            of_all.logs,
        ),
    }
    tables |= {name: PartedTable.held(table_of_frame(name, rows)) for name, rows in held.items()}
    there = {each for part in parts for each in part.matched}
    groups = replace(
        selected, missing=tuple(each for each in selected.missing if each not in there)
    )
    unnamed = sorted({each for part in parts for each in part.unnamed})
    return Answer(
        PartedTables({name: tables[name] for name in SHARE.tables}),
        groups,
        tuple(_doubts(parts, of_all.gaps)),
        statements=ends_statement(state, asked.end_offsets),
        warnings=(*settings.findings, *unnamed),
        summary={
            "settings": list(settings.said),
            "findings": list(settings.findings),
            "statuses": dict(rules.statuses),
            "fault_words": dict(rules.faults),
            "step_verdicts": dict(rules.step_verdicts),
            "limit_verdicts": dict(limit_verdicts()),
        },
        figures={
            **({} if sums is None else {SUMS: sums}),
            AS_OF: instant_of(state),
            NO_END_REASON: NO_END,
        },
    )


@dataclass(frozen=True)
class ShareOfAll:
    """What is the same for all groups.

    Attributes:
        state: Says which topics are wanted.
        by: What the backlog is added up by.
        question: Makes what the backlog is evaluated from out of `tables` and `log` of groups.
        transactions: As `ShareTables` has them.
        stable: Likewise.
        topics: The table `topics`.
        gaps: By partition of the topic with share state, what the dump lacks of it.
        logs: What else is known of it.
        evidence: What is known of the logs that steps are read off.
        missing: Names and patterns that match no share group that is there.
        with_own: Groups that have limits of their own.
    """

    state: ReplayedWorkspace
    by: str
    question: partial[ShareQuestion]
    transactions: pl.DataFrame | None
    stable: pl.DataFrame
    topics: pl.DataFrame
    gaps: Mapping[int, str]
    logs: StateLogs
    evidence: KnownLogs
    missing: tuple[str, ...]
    with_own: tuple[str, ...]


def _known_of_all(
    state: ReplayedWorkspace,
    request: BacklogSettings,
    settings: ShareSettings,
    rules: ShareRules,
    records: Records,
    selected: GroupSelection,
    limits: LimitSettings,
) -> ShareOfAll:
    as_of, gaps = instant_of(state), gaps_of_state(state)
    logs, clocks = data_logs(state), known_coverage(state).clocks
    samples = [end_offset_samples(state, request.end_offsets, as_of), logs.samples(as_of)]
    question = partial(
        ShareQuestion,
        ends=_ends(state, request.end_offsets, logs, as_of),
        samples=EndOffsetSamples.of(pa.concat_tables(samples)),
        gone=pl.Series(topics_gone(state), dtype=pl.String),
        settings=settings,
        as_of=as_of,
        rules=rules,
        coverage=StateCoverage(partition_count(state, SHARE_GROUP_STATE), gaps),
        clocks=clocks_of_topic(clocks, SHARE_GROUP_STATE),
        groups_clocks=clocks_of_topic(clocks, CONSUMER_OFFSETS),
    )
    return ShareOfAll(
        state,
        request.by,
        question,
        open_transactions_at(state, records),
        polars_rows(logs.stable.select(STABLE_ENDS.names())),
        polars_rows(StoredTables(state.tables.workspace).read("topics")),
        gaps,
        StateLogs(log_starts(state), gaps_of_all_groups(state.manifest, gaps)),
        known_logs(state, is_state_whole=not gaps),
        selected.missing,
        tuple(limits.groups),
    )


class _PartSums(NamedTuple):
    """What parts are asked for together.

    Attributes:
        reasons: `why` it cannot be told, and of how many (`len`) share partitions.
        without: Groups without a share partition, where one may be in what is missing.
        evidence: What is seen of what is limited.
        holders: Of `holders`, of all groups.
        matched: Which of the missing names and patterns match a group with a share partition.
        unnamed: A sentence for each topic without a name.
        sums: Of `parts_of_sums` by topic; None where the backlog is not added up by that.
    """

    reasons: pl.DataFrame
    without: Sequence[str]
    evidence: SeenOfSome
    holders: pl.DataFrame
    matched: frozenset[str]
    unnamed: Sequence[str]
    sums: pl.DataFrame | None


def orders_of(rules: ShareRules, by: str = PARTITION) -> dict[str, Order]:
    """Return the orders of tables, and of sums by something."""
    return {
        "share_backlog": Order(
            ("status", "records_left", *KEY, "topic"), partial(worst_first, rules=rules)
        ),
        # In the order of delivery states themselves, and not of their names.
        "share_delivery_counts": Order(KEY, partial(in_key_order, key=KEY)),
        "share_faults": Order(FAULTS.names(), faults_in_order),
        "share_stalls": Order(("duration_ms", *KEY, "since"), longest_first),
        "share_steps": Order(
            ("verdict", HOME, "began_offset", "topic_id", "partition"), steps_in_order
        ),
        SUMS: Order(
            ("status", "records_left", *BY.get(by, ())),
            partial(sums_in_order, by=by, rules=rules),
        ),
    }


ORDERS: Final = {name: order for name, order in orders_of(share_rules()).items() if name != SUMS}


def _made_in_parts(of_all: ShareOfAll, records: Records) -> PartAnswers:
    """Return the tables of all groups that are asked about, and what they come to together."""
    runner, rules = of_all.state.runner, of_all.question.keywords["rules"]
    count = parts_for(count_of_rows(of_all.state, records), AT_ONCE)
    with group_parts(rows_of_groups(of_all.state, records), count, runner.folder) as parts:
        return runner.run(partial(share_of_part, of_all), parts, orders_of(rules, of_all.by))


def share_of_part(of_all: ShareOfAll, rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return the tables of some whole groups.

    Args:
        of_all: What is the same for all.
        rows: Of `rows_of_groups`.
    """
    state, groups = of_all.state, rows["groups"]
    named, unnamed = with_names(arrow_rows(rows["share_partitions"]))
    shares = polars_rows(named)
    topics = pa.chunked_array([shares["topic"].unique().to_arrow().cast(pa.string())])
    is_wanted = pl.col("topic").is_in(state.topics_wanted(topics).to_pylist())
    records = share_records(
        rows,
        pl.concat([groups["group_id"], shares["group_id"]]).unique(),
        of_all.logs,
        of_all.evidence,
    )
    tables = ShareTables(
        with_possible_claims(shares.filter(is_wanted), state),
        rows["share_batches"],
        groups,
        rows["assignments"],
        records.phases,
        of_all.transactions,
        of_all.stable,
    )
    asked = of_all.question(tables=tables, log=records.log)
    found = evaluate_share(asked)
    made = {
        "share_backlog": found.rows,
        "share_delivery_counts": found.delivery_counts,
        "share_archived_ranges": found.archived,
        "share_faults": found.faults,
        "share_steps": steps_of(records.steps, asked.rules, state, known_coverage(state)),
        "share_stalls": _stalls(of_all, asked, records.whole_log),
    }
    sums = parts_of_sums(found.rows, of_all.by, asked.rules) if of_all.by in BY else None
    if sums is not None and of_all.by != TOPIC:
        # A group is of this part alone.
        made[SUMS] = summed([sums], of_all.by, asked.rules)
    with_rows = found.rows["group_id"].unique()
    without = groups["group_id"].filter(~groups["group_id"].is_in(with_rows.implode()))
    is_untold = of_all.gaps and not state.tables.selection.topics
    return PartAnswer(
        made,
        _PartSums(
            _reasons(found.rows),
            without.to_list() if is_untold else [],
            seen_of(groups, found.rows, of_all.with_own),
            holders(of_all.logs.above(rows["share_snapshot"])),
            frozenset(each for each in of_all.missing if names_wanted(with_rows, (each,))),
            unnamed,
            sums if of_all.by == TOPIC else None,
        ),
    )


def _stalls(of_all: ShareOfAll, question: ShareQuestion, log: ShareLog) -> pl.DataFrame:
    found = stall_history(
        log,
        round(question.rules.stalled.minutes * _MINUTE),
        round(question.as_of.timestamp() * 1000),
        of_all.gaps,
        question.clocks,
    )
    return named_stalls(found, of_all.topics)


def _reasons(rows: pl.DataFrame) -> pl.DataFrame:
    lost = rows.filter(pl.col("status") == CANNOT_TELL)
    why = pl.coalesce("missing", "reason", pl.lit("not known")).alias("why")
    return lost.group_by(why).agg(pl.len())


def _ends(
    state: ReplayedWorkspace, end_offsets: str | None, logs: DataLogs, as_of: datetime
) -> pl.DataFrame:
    """Return where logs end; before the end of a dump time indexes tell some of it exactly."""
    given = polars_rows(end_offsets_at(state, end_offsets))
    if state.is_end:
        return given
    indexed = polars_rows(logs.ends_at(as_of)).filter(pl.col("log_end_bound") == EXACT)
    return pl.concat([given, indexed.join(given, _PLACE, "anti").select(given.columns)])


def _doubts(parts: Sequence[_PartSums], gaps: Mapping[int, str]) -> list[Gap]:
    """Return what cannot be told of share partitions, each reason once with how often."""
    reasons = pl.concat(each.reasons for each in parts)
    unknown = (
        gap("share_state_unknown", share_partitions=count, why=reason)
        for reason, count in reasons.group_by("why").agg(pl.col("len").sum()).iter_rows()
    )
    # What the group records do not name (4.0 names nothing) may have been in what is missing.
    without = sorted(group for each in parts for group in each.without)
    listed = "; ".join(gaps[number] for number in sorted(gaps)[:_MOST_NAMED])
    return [
        *sorted(unknown, key=lambda each: each.words),
        *(
            gap("share_state_may_lack", group_id=group, topic=SHARE_GROUP_STATE, why=listed)
            for group in without
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
