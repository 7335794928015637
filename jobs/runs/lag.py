"""What `lag` does: read what a replay knows, evaluate, and say it; no Spark of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.lag.end_offset_samples import SAMPLES, EndOffsetSamples
from analytics.evaluate.lag.loss import files_of
from analytics.evaluate.lag.read_partitions import GroupTables
from analytics.evaluate.lag.summaries import BY, summed, unread_topics
from analytics.evaluate.lag.table import HISTORY, Lag, LagQuestion, evaluate_lag
from analytics.workspace import Workspace
from jobs.asked_groups import asked_groups
from jobs.describe_against import compare_saved
from jobs.describe_source import describe_source, subtopology_inputs
from jobs.end_offsets import end_offset_samples, end_offsets_at
from jobs.instant import EPOCH
from jobs.replayed import replayed
from jobs.runs.data_logs import EXACT, data_logs
from jobs.runs.kept_evaluations import keep_evaluations
from jobs.runs.log_retention import topic_retention
from jobs.settings_files import read_broker_settings, read_given_settings
from jobs.stored_tables import StoredTables
from reports.describe.against import told
from reports.lag.rows import history_section, lag_section, moves_section, sum_section
from reports.layout.nothing import nothing
from reports.row_formats import shown
from schemas.evaluation_rules import lag_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.asked_groups import AskedGroups
    from jobs.console import Console
    from jobs.replayed import Replayed
    from reports.row_formats import Section

DIFFERENT, CANNOT_TELL = 1, 3
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
        broker_configs: Files with brokers' settings.
        config: A file with settings.
    """

    by: str
    through_history: bool
    min_lag: int | None
    statuses: tuple[str, ...]
    end_offsets: str | None
    against: str | None = None
    broker_configs: tuple[str, ...] = ()
    config: str | None = None


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
        asked = asked_groups(state)
        asked.tell(console)
        found = _evaluated(state, asked, wanted)
        if out is not None:
            kept = {
                "lag": found.rows,
                "status_history": found.statuses,
                "offset_moves": found.moves,
            }
            keep_evaluations(Workspace(out), kept, state)
        if wanted.against is not None:
            source = describe_source(state, asked.found, wanted.end_offsets, console)
            result = compare_saved(wanted.against, source, state, console, found.rows)
            answer = told(result, output_format, {**state.said, "cannot_tell": asked.cannot_tell})
            return answer, asked.exit_code or (0 if result.is_equal else DIFFERENT)
        unread = _unread(state, asked, found) if wanted.by == "topic" else None
        untold = _untold(found.rows)
        for each in untold:
            console.error(f"cannot tell: {each}")
        said = {
            **state.said,
            "cannot_tell": [*asked.cannot_tell, *untold],
            "verdicts": dict(lag_rules().verdicts),
            **({} if unread is None else {"unread_topics": unread}),
        }
        answer = _answer(found, wanted, output_format, said)
        code = asked.exit_code or state.exit_code
    return answer, code or (CANNOT_TELL if untold else 0)


def _evaluated(state: Replayed, asked: AskedGroups, wanted: Wanted) -> Lag:
    tables, end_offsets = state.tables, wanted.end_offsets
    brokers = [read_broker_settings(each) for each in wanted.broker_configs]
    given = read_given_settings(wanted.config)
    as_of = _instant(state)
    logs = data_logs(state)
    ends = end_offsets_at(state, end_offsets)
    if not state.is_end:
        ends = _with_indexed(ends, logs.ends_at(as_of))
    samples = [end_offset_samples(state, end_offsets, as_of), logs.samples(as_of)]
    written = logs.written() if state.is_end else SAMPLES.empty_table()
    question = LagQuestion(
        GroupTables(
            asked.found,
            tables.read("members"),
            tables.read("assignments"),
            tables.read("committed_offsets"),
            StoredTables(tables.workspace).read("topics"),
            subtopology_inputs(state),
        ),
        ends,
        EndOffsetSamples.of(pa.concat_tables(samples)),
        as_of,
        lag_rules(),
        EndOffsetSamples.of(written),
        files_of(logs.segments),
        topic_retention(tables.read("topics"), tables.read("configs"), brokers, given),
        state.is_end,
    )
    return evaluate_lag(question, tables.batches("offset_history", HISTORY))


def _with_indexed(given: pa.Table, indexed: pa.Table) -> pa.Table:
    """Return ends that were given, and where there are none those of time indexes."""
    place = ["topic", "partition"]
    exact = pa.repeat(pa.scalar(EXACT), given.num_rows)
    others = indexed.join(given.select(place), place, join_type="left anti")
    return pa.concat_tables(
        [given.append_column("log_end_bound", exact), others.select(indexed.column_names)],
        promote_options="default",
    )


def _instant(state: Replayed) -> datetime:
    """Return the instant asked about; at the end of a dump, the time of its last record."""
    said = state.said["as_of"]["time"]
    return EPOCH if said is None else datetime.fromisoformat(said)


def _unread(state: Replayed, asked: AskedGroups, found: Lag) -> list[str] | None:
    """Return topics that no group reads; None where not all groups are known."""
    selection = state.tables.selection
    if asked.cannot_tell or asked.maybe_missing or selection.groups or selection.exclude_groups:
        return None
    tables = state.tables
    return unread_topics(
        tables.read("topics"),
        found.rows["topic"],
        tables.read("assignments", ["topic"])["topic"],
        pc.list_flatten(tables.read("members", ["subscribed_topics"])["subscribed_topics"]),
        tables.read("share_partitions", ["topic"])["topic"],
    )


def _untold(rows: pa.Table) -> list[str]:
    """Return what cannot be told of committed offsets, each reason once with how often."""
    lost = rows.filter(pc.equal(rows["verdict"], "cannot_tell"))
    counted = pc.value_counts(lost["reason"]).to_pylist()
    return sorted(f"{each['counts']} committed offsets: {each['values']}" for each in counted)


def _answer(found: Lag, wanted: Wanted, output_format: str, said: dict[str, Any]) -> str:
    rows = _selected(found.rows, wanted)
    section = (
        sum_section(summed(rows, wanted.by, lag_rules()), wanted.by)
        if wanted.by in BY
        else lag_section(rows)
    )
    through = [history_section(found.statuses), moves_section(found.moves)]
    sections = [section, *(through if wanted.through_history else [])]
    answer = shown(sections, output_format, said)
    if output_format in {"json", "csv"}:
        return answer
    return "\n\n".join([answer, *_notes(sections, said)])


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
