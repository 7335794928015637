"""What `lag` does: read what a replay knows, evaluate, and say it; no Spark of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.compacted_history import groups_lacking_history
from analytics.gaps.group_selection import select_groups
from analytics.gaps.workspace_filters import filters_of, has_topic_filter
from analytics.questions.lag.capacity import CAPACITY, group_capacity
from analytics.questions.lag.summaries import BY, summed, with_capacity, with_readers
from analytics.questions.lag.table import HISTORY, Lag, evaluate_lag
from analytics.questions.lag.topic_readers import topic_readers, unread_topics
from analytics.questions.marks import marked
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DIFFERENT, DONE
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.runs.audit.findings_of import failing
from jobs.runs.describe.against import compare_saved
from jobs.runs.describe.source import describe_source
from jobs.runs.lag.question import lag_question
from jobs.runs.lag.since import growth_since
from jobs.workspaces.replayed import replayed
from reports.describe.against import render_comparison
from reports.lag.rows import (
    capacity_section,
    growth_section,
    history_section,
    lag_section,
    moves_section,
    open_transactions_text,
    readers_section,
    sum_section,
)
from reports.layout.nothing import nothing
from reports.row_formats import render
from schemas.evaluation_rules import lag_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.gaps.group_selection import GroupSelection
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed
    from reports.row_formats import Section
    from schemas.evaluation_rules import LagRules

GROUP, TOPIC = "group", "topic"
_ONLY_SOME_TOPICS = "how many members groups could use: only some of their topics are looked at"
NEEDS = (
    *("groups", "members", "assignments", "committed_offsets", "topics", "partition_leaders"),
    *("share_partitions", "offset_history", "configs"),
)


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        by: partition, group, topic or member.
        through_history: Also when statuses changed.
        min_lag: Only partitions with at least this lag.
        statuses: Only partitions with one of these statuses or verdicts.
        end_offsets: A file.
        against: A saved output of Kafka's tool, to be held against the numbers.
        since: The workspace of an earlier dump.
    """

    by: str
    through_history: bool
    min_lag: int | None
    statuses: tuple[str, ...]
    end_offsets: str | None
    against: str | None = None
    since: str | None = None


def lag_of(
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
        rules = lag_rules(state.settings.given.thresholds("lag"))
        asked = select_groups(state)
        report_groups(console, asked)
        found, readers = _evaluated(state, asked, wanted)
        is_asked = out is not None or wanted.by == GROUP
        capacity = _capacity(state, asked, found) if is_asked else None
        growth = None
        not_earlier: list[str] = []
        if wanted.since is not None:
            kept_options = {"needs": NEEDS, **options}
            growth, not_earlier = growth_since(
                wanted.since, console, state, found.rows, **kept_options
            )
        if out is not None:
            kept = {
                "lag": found.rows,
                "status_history": found.statuses,
                "offset_moves": found.moves,
                "topic_readers": readers,
            }
            kept |= {} if capacity is None else {"group_capacity": capacity}
            kept |= {} if growth is None else {"lag_growth": growth}
            keep_evaluations(Workspace(out), kept, state)
        if wanted.against is not None:
            source = describe_source(state, asked.found, wanted.end_offsets, console)
            result = compare_saved(wanted.against, source, state, console, found.rows)
            answer = render_comparison(
                result, output_format, {**state.response_metadata, "cannot_tell": asked.cannot_tell}
            )
            return answer, groups_exit_code(asked) or (DONE if result.is_equal else DIFFERENT)
        unread = _unread(state, asked, readers) if wanted.by == "topic" else None
        limitations = [*_limitations(found.rows), *not_earlier]
        if wanted.by == GROUP and _are_some_topics(state):
            limitations.append(_ONLY_SOME_TOPICS)
        for each in limitations:
            console.error(f"cannot tell: {each}")
        said = {
            **state.response_metadata,
            "cannot_tell": [*asked.cannot_tell, *limitations],
            "verdicts": dict(rules.verdicts),
            **({} if unread is None else {"unread_topics": unread}),
        }
        beside = (readers, capacity if wanted.by == GROUP else None, growth)
        answer = _answer(found, beside, wanted, output_format, said, rules)
        code = groups_exit_code(asked) or state.exit_code or (CANNOT_TELL if limitations else DONE)
        code = code or failing(console, state, {"lag": found.rows})
    return answer, code


def _evaluated(state: Replayed, asked: GroupSelection, wanted: Wanted) -> tuple[Lag, pa.Table]:
    """Return what was found of the topics that are wanted, and who reads them."""
    question = lag_question(state, asked, wanted.end_offsets)
    found = evaluate_lag(question, state.tables.batches("offset_history", HISTORY))
    shares = state.tables.read("share_partitions", ["group_id", "topic"])
    readers = topic_readers(found.rows, question.tables, shares)
    readers = marked(readers, question.tables.groups, ["group_id"])
    readers = marked(readers, found.rows, ["group_id", "topic"])
    rows, readers = (
        each.filter(pc.is_in(each["topic"], state.topics_wanted(each["topic"])))
        for each in (found.rows, readers)
    )
    return replace(found, rows=rows), readers


def _are_some_topics(state: Replayed) -> bool:
    return bool(state.tables.selection.topics) or has_topic_filter(state.manifest)


def _capacity(state: Replayed, asked: GroupSelection, found: Lag) -> pa.Table:
    """Return how many members groups could use; nothing where not all they read is looked at."""
    tables, columns = state.tables, ["group_id", "missing"]
    capacity = (
        CAPACITY.empty_table()
        if _are_some_topics(state)
        else group_capacity(found.rows, tables.read("members", ["group_id"]))
    )
    # Paces are of the commits that are there: earlier ones would give others.
    lacking = groups_lacking_history(state, asked.found).rename_columns(columns)
    made_of = pa.concat_tables(
        [tables.read("groups", columns), found.rows.select(columns), lacking]
    )
    return marked(capacity, made_of, ["group_id"])


def _unread(state: Replayed, asked: GroupSelection, readers: pa.Table) -> list[str] | None:
    """Return topics that no group reads; None where not all groups are known."""
    selection = state.tables.selection
    is_limited = selection.groups or selection.exclude_groups or filters_of(state.manifest)
    if asked.cannot_tell or is_limited:
        return None
    topics = state.tables.read("topics")
    wanted = topics.filter(pc.is_in(topics["topic"], state.topics_wanted(topics["topic"])))
    return unread_topics(wanted, readers)


def _limitations(rows: pa.Table) -> list[str]:
    """Return what cannot be told of committed offsets, each reason once with how often."""
    lost = rows.filter(pc.equal(rows["verdict"], "cannot_tell"))
    counted = pc.value_counts(lost["reason"]).to_pylist()
    return sorted(f"{each['counts']} committed offsets: {each['values']}" for each in counted)


def _answer(
    found: Lag,
    beside: tuple[pa.Table, pa.Table | None, pa.Table | None],
    wanted: Wanted,
    output_format: str,
    said: dict[str, Any],
    rules: LagRules,
) -> str:
    readers, capacity, growth = beside
    rows = _selected(found.rows, wanted)
    sums = summed(rows, wanted.by, rules) if wanted.by in BY else None
    if sums is not None and wanted.by == TOPIC:
        is_whole = rows.num_rows == found.rows.num_rows
        sums = with_readers(sums, readers, said.get("unread_topics", ()), is_whole=is_whole)
    if sums is not None and capacity is not None:
        sums = with_capacity(sums, capacity)
    sections = [lag_section(rows) if sums is None else sum_section(sums, wanted.by)]
    if growth is not None:
        sections.append(growth_section(growth))
    if wanted.through_history:
        sections.append(history_section(found.statuses))
        if found.moves.num_rows or output_format in {"json", "csv"}:
            sections.append(moves_section(found.moves))
    if wanted.by == TOPIC and output_format in {"json", "csv"}:
        sections.append(readers_section(readers))
    if capacity is not None and output_format in {"json", "csv"}:
        sections.append(capacity_section(capacity))
    answer = render(sections, output_format, said)
    if output_format in {"json", "csv"}:
        return answer
    held = open_transactions_text(rows)
    return "\n\n".join([answer, *_notes(sections, said), *([held] if held else [])])


def _notes(sections: Sequence[Section], said: dict[str, Any]) -> list[str]:
    verdicts = set(sections[0].rows["verdict"].to_pylist())
    if not verdicts:
        return [nothing("No partition is owned or committed by the groups asked for.", said)]
    meanings = [f"{word}: {text}" for word, text in said["verdicts"].items() if word in verdicts]
    notes = ["\n".join(meanings)]
    if said.get("unread_topics"):
        notes.append(f"Topics that no group is known to read: {', '.join(said['unread_topics'])}")
    return notes


def _selected(rows: pa.Table, wanted: Wanted) -> pa.Table:
    if wanted.min_lag is not None:
        rows = rows.filter(pc.greater_equal(rows["lag"], pa.scalar(wanted.min_lag, pa.int64())))
    if wanted.statuses:
        words = pa.array(wanted.statuses)
        rows = rows.filter(
            pc.or_(pc.is_in(rows["status"], words), pc.is_in(rows["verdict"], words))
        )
    return rows
