"""What `usage` does: read decoded records once, add them up, hold them against the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import Selection, names_wanted
from analytics.evaluate.usage.key_states import COLUMNS, COMMIT_COLUMNS, KeyStates
from analytics.evaluate.usage.missing import untold
from analytics.evaluate.usage.partition_usage import (
    identity,
    partition_usage,
    untabled_usage,
)
from analytics.evaluate.usage.summaries import summed
from analytics.evaluate.usage.topic_usage import topic_usage
from analytics.evaluate.usage.transaction_ends import IN_TRANSACTIONS, MARKERS, TransactionEnds
from analytics.workspace import Workspace
from jobs.decoded_records import decoded_tables, record_batches, rows_where
from jobs.replayed import replayed
from jobs.runs.kept_evaluations import keep_evaluations
from reports.layout.output_format import OutputFormat
from reports.layout.section import raw_section
from reports.row_formats import shown
from reports.usage.rows import identity_said, partition_section, usage_section
from schemas import TOPICS, table

if TYPE_CHECKING:
    from analytics.evaluate.usage.partition_usage import Identity
    from jobs.console import Console

CANNOT_TELL = 3
NEEDS = ("groups", "configs", "partition_leaders")
_COMMITS = "offset_commit"
_TOP = 10


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        by: What records and bytes are added up by.
    """

    by: str


@dataclass(frozen=True)
class Usage:
    """What was found.

    Attributes:
        rows: The table `topic_usage`, of all groups.
        partitions: The table `partition_usage`.
        even: Whether bytes come out even.
        untold: What cannot be told.
    """

    rows: pa.Table
    partitions: pa.Table
    even: Identity
    untold: list[str]


def usage_of(
    console: Console,
    wanted: Wanted,
    output_format: OutputFormat,
    *,
    out: str | None,
    groups: tuple[str, ...],
    exclude_groups: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT is not what it has to be.
    """
    # Bytes come out even of all groups only: rows are chosen when all is known.
    with replayed(console, needs=NEEDS, out=out, **options) as state:
        found = evaluated(state.source, state.manifest)
        if out is not None:
            kept = {"topic_usage": found.rows, "partition_usage": found.partitions}
            keep_evaluations(Workspace(out), kept, state)
        for each in found.untold:
            console.error(f"cannot tell: {each}")
        said = {
            **state.said,
            "cannot_tell": found.untold,
            "file_bytes": found.even.file_bytes,
            "comes_out_even": found.even.holds,
        }
        code = state.exit_code
    chosen = _of_groups(found.rows, Selection(groups, exclude_groups))
    answer = _answer(found, chosen, wanted, output_format, said)
    return answer, code or (CANNOT_TELL if found.untold else 0)


def evaluated(space: Workspace, manifest: Mapping[str, Any]) -> Usage:
    """Read every decoded record once.

    Args:
        space: The workspace with the decoded tables.
        manifest: Its own, or that of a replay of it.
    """
    there = {each["topic"] for each in manifest["partitions"]}
    topics = [topic for topic in TOPICS if topic in there]
    states = KeyStates({}, _transaction_ends(space, topics))
    for topic in topics:
        for name in decoded_tables(topic):
            columns = [*COLUMNS, *(COMMIT_COLUMNS if name == _COMMITS else ())]
            for batch in record_batches(space, topic, name, columns):
                states.add(topic, name, batch)
    partitions = partition_usage(manifest)
    rows = topic_usage(states, untabled_usage(manifest))
    rows = rows.select([each.name for each in table("topic_usage").columns])
    even = identity(partitions, rows)
    return Usage(rows, partitions, even, untold(manifest, even))


def _transaction_ends(space: Workspace, topics: Iterable[str]) -> TransactionEnds:
    """Return how transactions ended; where hardly any record is in one, little is read."""
    schema = pa.schema([(name, pa.string()) for name in MARKERS]).empty_table()
    markers = [*rows_where(space, "control_markers", MARKERS)]
    ends = TransactionEnds.of(pa.concat_tables(markers) if markers else schema)
    for topic in topics:
        for name in decoded_tables(topic):
            ends.see(rows_where(space, name, IN_TRANSACTIONS, pc.field("is_transactional")))
    return ends


def _of_groups(rows: pa.Table, selection: Selection) -> pa.Table:
    if not (selection.groups or selection.exclude_groups):
        return rows
    there = [name for name in pc.unique(rows["group_id"]).to_pylist() if name is not None]
    names = names_wanted(there, selection.groups, selection.exclude_groups, there)
    return rows.filter(pc.is_in(rows["group_id"], pa.array(names, pa.string())))


def _with_top(wanted: OutputFormat) -> OutputFormat:
    """Return the format; of several tables people see the first rows, unless they ask for more."""
    if wanted.is_for_programs or wanted.top is not None or wanted.table or wanted.only_problems:
        return wanted
    return OutputFormat(
        wanted, is_wide=wanted.is_wide, top=_TOP, sort=wanted.sort, is_colored=wanted.is_colored
    )


def _answer(
    found: Usage,
    chosen: pa.Table,
    wanted: Wanted,
    output_format: OutputFormat,
    said: dict[str, Any],
) -> str:
    is_for_programs = output_format in {"json", "csv"}
    sections = [usage_section(summed(chosen, wanted.by), wanted.by)]
    sections.append(partition_section(found.partitions))
    if is_for_programs or output_format.table == "topic_usage":
        sections.append(raw_section(chosen, "topic_usage"))
    answer = shown(sections, _with_top(output_format), said)
    if is_for_programs:
        return answer
    return "\n\n".join([answer, identity_said(found.partitions, found.even)])
