"""`describe --against FILE`: a saved output of Kafka's tool held against ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import Selection, names_wanted
from analytics.errors import CannotTellError, InputUnreadableError
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.timeline.topic_lives import METADATA_LOG
from analytics.tables.stored_tables import StoredTables
from jobs.asking import Shown
from jobs.cli.exit_codes import DIFFERENT, DONE
from jobs.runs.describe.source import describe_source
from reports.describe.against import AROUND, Comparison, compare, render_comparison
from reports.describe.columns import CONSUMER, OFFSETS, SHARE, STREAMS, View, number_of
from reports.describe.refused import refused_by_kafka
from reports.describe.saved_output import SavedOutput, read_saved_output
from reports.describe.source import Source, only_groups
from reports.describe.streams_groups import read_partitions
from reports.describe.views import rows_of
from reports.lag.kafkas_numbers import with_numbers

if TYPE_CHECKING:
    from analytics.questions.answer import Answer
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed

CONSUMER_PROTOCOLS = ("", "consumer")
"""What kafka-consumer-groups lists groups of; connectors have another."""

REPARTITION = "-repartition"
"""How Kafka Streams ends the names of topics between its own subtopologies."""


def compare_saved(
    path: str,
    source: Source,
    replayed: Replayed,
    console: Console,
    lag: pa.Table | None = None,
) -> Comparison:
    """Hold a saved output against the rows made from a source.

    Args:
        path: Of the file.
        source: Tables at the instant asked about.
        replayed: Says which groups and topics are wanted, and whose tool it was.
        console: Where it is told what is compared.
        lag: The table `lag`: its numbers are compared, instead of those of `describe`.

    Raises:
        CannotTellError: The file holds no rows: the tool failed, or it is none.
        InputUnreadableError: It holds no offsets of groups that `lag` is about.
    """
    # As it is: names may have line breaks of any kind.
    text = Path(path).read_bytes().decode("utf-8", "replace")
    saved = read_saved_output(text, source.groups["group_id"].to_pylist())
    if not saved.views:
        why = f"the tool failed: {saved.errors[0]:.200}" if saved.errors else "it has no rows"
        raise CannotTellError(f"{path}: cannot tell what Kafka's tool said: {why}")
    selection = replayed.tables.selection
    saved.rows = [row for row in saved.rows if _is_wanted(row, selection)]
    groups = {row["group"] or "" for row in saved.rows}
    view = max(saved.views, key=lambda each: _named_of(each, groups, source))
    is_verbose = "target_assignment_epoch" in saved.columns
    if lag is not None and (view.what != OFFSETS or view.family == SHARE):
        raise InputUnreadableError(
            f"{path} has no offsets of consumer or streams groups; looked for what "
            f"kafka-consumer-groups or kafka-streams-groups --describe --offsets prints"
        )
    rows = rows_of(view, source, replayed.release, verbose=is_verbose)
    if lag is not None:
        rows = with_numbers(rows, view, source.groups_of(view.family), lag)
    only = saved.groups or (list(groups) if len(groups) == 1 else [])
    if only and not selection.groups:
        console.say(f"compared: {', '.join(only)}, the only groups in the file")
        rows = rows.filter(pc.is_in(rows["group"], pa.array(only)))
    if "topic" in rows.column_names:
        rows = rows.filter(pc.is_in(rows["topic"], replayed.topics_wanted(rows["topic"])))
    rows = _shown_by_kafka(rows, view, source, saved, replayed.release)
    refused = _untold(groups - set(rows["group"].to_pylist()), replayed)
    saved.rows = [row for row in saved.rows if (row["group"] or "") not in refused]
    absent = set(rows["group"].to_pylist()) - groups
    if absent:
        found = refused_by_kafka(view, source, _topics_there(replayed), is_old=saved.is_old)
        refused |= {group: why for group, why in found.items() if group in absent}
        rows = rows.filter(pc.invert(pc.is_in(rows["group"], pa.array(refused, pa.string()))))
    around = AROUND | {"start_offset"} if _is_4_0(view, replayed.release) else AROUND
    result = compare(saved, view, rows.to_pylist(), around)
    return replace(result, refused=refused)


def shown_against(
    console: Console,
    path: str,
    end_offsets: str | None,
    state: Replayed,
    answer: Answer,
    output_format: str,
    lag: pa.Table | None = None,
) -> Shown:
    """Return the answer to a question as a comparison with a saved output.

    Raises:
        CannotTellError: As `compare_saved`.
        InputUnreadableError: As `compare_saved`.
    """
    assert answer.groups is not None
    source = describe_source(state, answer.groups.found, end_offsets, console)
    result = compare_saved(path, source, state, console, lag)
    metadata = {**state.response_metadata, "cannot_tell": list(answer.groups.cannot_tell)}
    text = render_comparison(result, output_format, metadata)
    return Shown(text, DONE if result.is_equal else DIFFERENT)


def _untold(groups: Collection[str], replayed: Replayed) -> dict[str, str]:
    """Return why groups that only the file has may be in what the dump lacks."""
    if not groups:
        return {}
    untold = GroupCompleteness(replayed)
    found = {group: untold.of_group(group) for group in sorted(groups)}
    return {
        group: f"cannot tell: {why.removeprefix(f'{group}: ')}"
        for group, why in found.items()
        if why is not None
    }


def _topics_there(replayed: Replayed) -> frozenset[str] | None:
    """Return the topics that were there, None where the dump does not tell."""
    rows = StoredTables(replayed.tables.workspace).read("topics", ["topic", "source", "deleted_at"])
    listed = rows.to_pylist()
    if all(each["source"] != METADATA_LOG for each in listed):
        return None
    return frozenset(each["topic"] for each in listed if each["deleted_at"] is None)


def _is_wanted(row: Mapping[str, str | None], selection: Selection) -> bool:
    """Return whether a row of the file is about a group and a topic that are asked for."""
    if not names_wanted([row["group"] or ""], selection.groups, selection.exclude_groups):
        return False
    return "topic" not in row or bool(names_wanted([row["topic"] or ""], selection.topics))


def _named_of(view: View, groups: set[str], source: Source) -> int:
    """Return how many of the groups are of the types that a tool describes."""
    return len(groups & set(source.groups_of(view.family)["group_id"].to_pylist()))


def _shown_by_kafka(
    rows: pa.Table, view: View, source: Source, saved: SavedOutput, release: str
) -> pa.Table:
    """Leave out the rows that Kafka's tool does not print, though the coordinator knows them."""
    if view.family == CONSUMER:
        protocols = pc.fill_null(source.groups["protocol_type"], "")
        known = source.groups.filter(pc.is_in(protocols, pa.array(CONSUMER_PROTOCOLS)))
        return rows.filter(pc.is_in(rows["group"], known["group_id"].combine_chunks()))
    if view.what == OFFSETS and view.family == STREAMS:
        read = read_partitions(source).rename_columns(["group", "topic", "partition"])
        rows = rows.join(read, ["group", "topic", "partition"], join_type="left semi")
        return rows if _are_inner_commits_shown(saved, release) else _as_4_1(rows)
    return _as_4_0(rows, source) if _is_4_0(view, release) else rows


def _is_4_0(view: View, release: str) -> bool:
    """Return whether the tool prints lengths of logs as START-OFFSET, as that of 4.0 does."""
    return view == View(SHARE, OFFSETS) and number_of(release) < (4, 1)


def _are_inner_commits_shown(saved: SavedOutput, release: str) -> bool:
    """Return whether the tool shows commits of repartition topics: that of 4.1 does not."""
    inner = [row for row in saved.rows if (row["topic"] or "").endswith(REPARTITION)]
    if "current_offset" in saved.columns and inner:
        return any(row["current_offset"] is not None for row in inner)
    return number_of(release) >= (4, 2)


def _as_4_1(rows: pa.Table) -> pa.Table:
    """Return offsets of streams groups as 4.1 has them: commits of source topics alone."""
    is_inner = pc.ends_with(rows["topic"], REPARTITION)
    for name in ("current_offset", "leader_epoch"):
        kept = pc.if_else(is_inner, pa.scalar(None, rows[name].type), rows[name])
        rows = rows.set_column(rows.column_names.index(name), name, kept)
    return rows


def _as_4_0(rows: pa.Table, source: Source) -> pa.Table:
    """Return offsets of share groups as 4.0 has them: the length of each log a member reads."""
    given = only_groups(source.assignments, source.groups_of(SHARE))
    given = given.rename_columns(
        ["group" if name == "group_id" else name for name in given.column_names]
    )
    keys = ["group", "topic", "partition"]
    owned = given.filter(pc.equal(given["kind"], "current")).select(keys)
    rows = owned.group_by(keys).aggregate([])
    rows = rows.join(source.ends, ["topic", "partition"], join_type="left outer")
    length = pc.subtract(rows["log_end_offset"], rows["log_start_offset"])
    return rows.append_column("start_offset", length)
