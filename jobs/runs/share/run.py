"""What `share` does: read what a replay knows of share groups, evaluate, and say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.group_selection import select_groups
from analytics.gaps.internal_topics import partition_count
from analytics.gaps.workspace_filters import filters_of, filters_sentence
from analytics.questions.lag.data_logs import EXACT, data_logs
from analytics.questions.share.backlog.isolation import STABLE_ENDS
from analytics.questions.share.backlog.stall_history import named_stalls, stall_history
from analytics.questions.share.backlog.summaries import BY, summed
from analytics.questions.share.backlog.table import (
    NO_END,
    Share,
    ShareQuestion,
    ShareTables,
    evaluate_share,
)
from analytics.questions.share.backlog.whole_state import StateCoverage
from analytics.questions.share.state_log.prunable import prunable
from analytics.replayed.answered_instant import instant_of
from analytics.replayed.end_offset_samples import EndOffsetSamples
from analytics.replayed.end_offsets import end_offset_samples, end_offsets_at
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.replayed.topic_names import topics_gone, with_names
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DIFFERENT, DONE
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.runs.audit.findings_of import failing
from jobs.runs.describe.against import compare_saved
from jobs.runs.describe.source import NEEDS as DESCRIBED
from jobs.runs.describe.source import describe_source
from jobs.runs.share.gaps import gaps_of_state, with_possible_claims
from jobs.runs.share.limits import limits_of
from jobs.runs.share.notes import share_notes
from jobs.runs.share.records import homes_with_clocks_set, share_records, steps_of
from jobs.runs.share.settings import settings_found
from jobs.workspaces.replayed import replayed
from reports.describe.against import render_comparison
from reports.row_formats import render
from reports.share.companions import (
    archived_section,
    count_section,
    fault_section,
    limit_section,
    not_kept,
    out_of_order,
    prunable_section,
    stalls_section,
    step_section,
)
from reports.share.rows import backlog_section, sum_section, table_section
from schemas import SHARE_GROUP_STATE
from schemas.share_limits import limit_verdicts
from schemas.share_rules import share_rules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from analytics.gaps.group_selection import GroupSelection
    from analytics.questions.lag.data_logs import DataLogs
    from analytics.questions.share.state_log.prunable import StateRecords
    from jobs.cli.console import Console
    from jobs.runs.share.settings import FoundSettings
    from jobs.workspaces.replayed import Replayed
    from schemas.share_rules import ShareRules

_MOST_NAMED, _MINUTE = 5, 60_000
_PLACE = ["topic", "partition"]
NEEDS = (*DESCRIBED, "share_batches", "configs")
NO_LAG = (
    "LAG and LEFT are - where it is not known where the log ends; --end-offsets FILE tells it, or "
    "the data topics' log directories beside the dump do."
)
COMPANIONS = {
    "share_stalls": stalls_section,
    "share_delivery_counts": count_section,
    "share_archived_ranges": archived_section,
    "share_faults": fault_section,
    "share_steps": step_section,
    "share_limits": limit_section,
    "share_prunable": prunable_section,
}
"""The tables beside the backlog, and how they are shown."""


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        by: partition, group or topic.
        against: A saved output of kafka-share-groups.
        end_offsets: A file.
        through_history: Also when share partitions stood still before.
    """

    by: str
    against: str | None
    end_offsets: str | None
    through_history: bool = False


def share_of(
    console: Console,
    wanted: Wanted,
    output_format: str,
    *,
    out: str | None,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT or a side file is not what it has to be.
    """
    with replayed(console, needs=NEEDS, out=out, **options) as state:
        rules = share_rules(state.settings.given.thresholds("share"))
        asked = select_groups(state, "share", with_offsets=False)
        if wanted.against is not None:
            report_groups(console, asked)
            source = describe_source(state, asked.found, wanted.end_offsets, console)
            result = compare_saved(wanted.against, source, state, console)
            answer = render_comparison(
                result, output_format, {**state.response_metadata, "cannot_tell": []}
            )
            return answer, groups_exit_code(asked) or (DONE if result.is_equal else DIFFERENT)
        settings = settings_found(state.release, state.tables.read("configs"), state.settings)
        for each in settings.findings:
            console.warn(each)
        gaps = gaps_of_state(state)
        made = _made(console, state, asked, settings, rules, wanted.end_offsets, gaps)
        rows = made["share_backlog"]
        asked = asked.without_missing(rows["group_id"].unique().to_pylist())
        report_groups(console, asked)
        if out is not None:
            keep_evaluations(Workspace(out), made, state)
        limitations = _limitations(rows, asked, gaps, state)
        for each in limitations:
            console.error(f"cannot tell: {each}")
        said = {
            **state.response_metadata,
            "cannot_tell": [*asked.cannot_tell, *limitations],
            "settings": list(settings.said),
            "findings": list(settings.findings),
            "statuses": dict(rules.statuses),
            "fault_words": dict(rules.faults),
            "step_verdicts": dict(rules.step_verdicts),
            "limit_verdicts": dict(limit_verdicts()),
        }
        answer = _answer(made, wanted, output_format, said, instant_of(state), rules)
        code = groups_exit_code(asked) or state.exit_code or (CANNOT_TELL if limitations else DONE)
        code = code or failing(console, state, made)
    return answer, code


def _made(
    console: Console,
    state: Replayed,
    asked: GroupSelection,
    settings: FoundSettings,
    rules: ShareRules,
    end_offsets: str | None,
    gaps: Mapping[int, str],
) -> dict[str, pa.Table]:
    """Return the tables by name."""
    tables, as_of = state.tables, instant_of(state)
    shares, unnamed = with_names(tables.read("share_partitions"))
    for each in unnamed:
        console.warn(each)
    groups = pa.chunked_array(
        [*asked.found["group_id"].chunks, *shares["group_id"].chunks], pa.string()
    ).unique()
    shares = shares.filter(pc.is_in(shares["topic"], state.topics_wanted(shares["topic"])))
    shares = with_possible_claims(shares, state)
    records = share_records(state, groups, is_state_whole=not gaps)
    logs = data_logs(state)
    question = ShareQuestion(
        ShareTables(
            shares,
            tables.read("share_batches"),
            asked.found,
            tables.read("assignments", ["group_id", "kind", "topic_id", "partition"]),
            records.phases,
            records.transactions,
            logs.stable.select(STABLE_ENDS.names),
        ),
        records.log,
        _ends(state, end_offsets, logs, as_of),
        EndOffsetSamples.of(
            pa.concat_tables([end_offset_samples(state, end_offsets, as_of), logs.samples(as_of)])
        ),
        topics_gone(state),
        settings.settings,
        as_of,
        rules,
        StateCoverage(partition_count(state, SHARE_GROUP_STATE), gaps),
        records.clock_steps,
        homes_with_clocks_set(state, records.phases),
    )
    found: Share = evaluate_share(question)
    topics = StoredTables(tables.workspace).read("topics")
    return {
        "share_backlog": found.rows,
        "share_delivery_counts": found.delivery_counts,
        "share_archived_ranges": found.archived,
        "share_faults": found.faults,
        "share_steps": steps_of(records, rules, state),
        "share_limits": limits_of(state, asked, found.rows),
        "share_stalls": named_stalls(
            stall_history(
                records.whole_log,
                round(rules.stalled_minutes * _MINUTE),
                round(as_of.timestamp() * 1000),
                gaps,
                records.clock_steps,
            ),
            topics,
        ),
        "share_prunable": prunable(
            records.state, topics, _with_filters(state, records.state, gaps)
        ),
    }


def _with_filters(
    state: Replayed, records: StateRecords, gaps: Mapping[int, str]
) -> Mapping[int, str]:
    """Return what is lacking of internal partitions: what a filter left out holds records, too."""
    sentence = filters_sentence(filters_of(state.manifest))
    if sentence is None:
        return gaps
    numbers = pc.unique(records.snapshots["partition"]).to_pylist()
    return {number: "; ".join(filter(None, [sentence, gaps.get(number)])) for number in numbers}


def _ends(state: Replayed, end_offsets: str | None, logs: DataLogs, as_of: datetime) -> pa.Table:
    """Return where logs end; before the end of a dump time indexes tell some of it exactly."""
    given = end_offsets_at(state, end_offsets)
    if state.is_end:
        return given
    indexed = logs.ends_at(as_of)
    indexed = indexed.filter(pc.equal(indexed["log_end_bound"], EXACT))
    others = indexed.join(given.select(_PLACE), _PLACE, join_type="left anti")
    return pa.concat_tables([given, others.select(given.column_names)])


def _limitations(
    rows: pa.Table, asked: GroupSelection, gaps: Mapping[int, str], state: Replayed
) -> list[str]:
    """Return what cannot be told of share partitions, each reason once with how often."""
    lost = rows.filter(pc.equal(rows["status"], "cannot_tell"))
    why = pc.coalesce(lost["missing"], lost["reason"], "not known")
    counted = pc.value_counts(why).to_pylist()
    found = sorted(f"{each['counts']} share partitions: {each['values']}" for each in counted)
    if not gaps or state.tables.selection.topics:
        return found
    # What the group records do not name (4.0 names nothing) may have been in what is missing.
    without = set(asked.found["group_id"].to_pylist()) - set(rows["group_id"].to_pylist())
    listed = "; ".join(gaps[number] for number in sorted(gaps)[:_MOST_NAMED])
    return [*found, *(f"{group}: it may have share state: {listed}" for group in sorted(without))]


def _answer(
    made: Mapping[str, pa.Table],
    wanted: Wanted,
    output_format: str,
    said: dict[str, Any],
    as_of: datetime,
    rules: ShareRules,
) -> str:
    rows = made["share_backlog"]
    is_for_programs = output_format in {"json", "csv"}
    if wanted.by in BY:
        backlog = sum_section(summed(rows, wanted.by, rules), wanted.by)
    else:
        people = backlog_section(rows, as_of, (NO_END,))
        backlog = table_section(rows) if is_for_programs else people
    beside = [show(made[name]) for name, show in COMPANIONS.items()]
    if is_for_programs:
        return render([backlog, *beside], output_format, said)
    asked = getattr(output_format, "table", None)
    # People are shown what is wrong; the rest where they ask for it.
    if not asked:
        wanted_ones = {"faults", *(["stalls"] if wanted.through_history else [])}
        wrong = {
            "limits": limit_section(not_kept(made["share_limits"])),
            "steps": step_section(out_of_order(made["share_steps"])),
        }
        beside = [wrong.get(each.name, each) for each in beside]
        beside = [
            each for each in beside if each.name in {*wanted_ones, *wrong} and each.rows.num_rows
        ]
    sections = [backlog, *beside]
    notes = share_notes(sections, said, asked)
    if pc.any(pc.equal(rows["reason"], NO_END)).as_py():
        notes.append(NO_LAG)
    if not rows.num_rows and not asked:
        return "\n\n".join(notes)
    return "\n\n".join([render(sections, output_format, said), *notes])
