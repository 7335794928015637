"""A saved output of Kafka's own tool, held against an answer: `--against FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.errors import CannotTellError, InputUnreadableError
from analytics.gaps.gap import gap_documents
from analytics.questions.describe.description import (
    asked_names,
    described_groups,
    existing_topics,
    why_not_described,
)
from analytics.side_files import read_bytes
from jobs.asking import PrintedAnswer
from jobs.cli.exit_codes import DIFFERENT, DONE
from reports.describe.against import (
    Comparison,
    compare_rows,
    printed_rows,
    render_comparison,
    view_of,
)
from reports.describe.answer import only_named
from reports.describe.groups import Source
from reports.describe.tool_output import OFFSETS, SHARE, SavedOutput, read_saved_output

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.questions.question import Answer
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed
    from reports.describe.tool_output import View


def shown_against(
    console: Console,
    path: str,
    end_offsets: str | None,
    state: Replayed,
    answer: Answer,
    output_format: str,
    lag: pa.Table | None = None,
) -> PrintedAnswer:
    """Return the answer to a question as a comparison with a saved output.

    Args:
        console: Where it is said what is compared, and which topics have no name.
        path: Of the file.
        end_offsets: A file that says where logs ended.
        state: With the tables that describe groups, too.
        answer: About groups, with all columns of theirs.
        output_format: The format.
        lag: The table `lag`: its numbers are compared, instead of those of `describe`.

    Raises:
        CannotTellError: As `compare_saved`.
        InputUnreadableError: As `compare_saved`.
    """
    assert answer.groups is not None
    described = described_groups(state, answer.groups.rows, end_offsets)
    for each in described.warnings:
        console.warn(each)
    source = Source(**vars(described.description))
    return shown_comparison(console, path, source, state, answer, output_format, lag)


def shown_comparison(
    console: Console,
    path: str,
    source: Source,
    state: Replayed,
    answer: Answer,
    output_format: str,
    lag: pa.Table | None = None,
) -> PrintedAnswer:
    """Return a comparison of a saved output with groups that are described already.

    Raises:
        CannotTellError: As `compare_saved`.
        InputUnreadableError: As `compare_saved`.
    """
    assert answer.groups is not None
    result = compare_saved(path, source, state, console, lag)
    metadata = {
        **state.response_metadata,
        "cannot_tell": list(answer.groups.cannot_tell),
        "gaps": gap_documents((*answer.groups.gaps, *state.gaps)),
    }
    text = render_comparison(result, output_format, metadata)
    return PrintedAnswer(text, state.exit_code or (DONE if result.is_equal else DIFFERENT))


def compare_saved(
    path: str,
    source: Source,
    state: Replayed,
    console: Console,
    lag: pa.Table | None = None,
) -> Comparison:
    """Hold a saved output against the rows made from a source.

    Args:
        path: Of the file.
        source: Tables at the instant asked about.
        state: Says which groups and topics are wanted, and whose tool it was.
        console: Where it is said what is compared.
        lag: The table `lag`: its numbers are compared, instead of those of `describe`.

    Raises:
        CannotTellError: The file holds no rows: the tool failed, or it is none.
        InputUnreadableError: It holds no offsets of groups that `lag` is about.
    """
    saved = _read(path, source)
    asked = asked_names(state, saved.group_names, saved.topic_names)
    saved = saved.only(asked.groups, asked.topics)
    view = view_of(saved, source)
    if lag is not None:
        _check_is_of_lag(path, view)
    rows = printed_rows(saved, view, source, state.release, lag)
    only = saved.groups or (sorted(saved.group_names) if len(saved.group_names) == 1 else [])
    is_narrowed = bool(only) and not state.tables.selection.groups
    if is_narrowed:
        console.say(f"compared: {', '.join(only)}, the only groups in the file")
    topics = state.topics_wanted(rows["topic"]) if "topic" in rows.column_names else None
    rows = only_named(rows, only if is_narrowed else None, topics)
    theirs, ours = saved.group_names, set(rows["group"].to_pylist())
    return compare_rows(
        saved,
        view,
        rows,
        source,
        state.release,
        not_described=why_not_described(state, theirs - ours),
        topics=existing_topics(state) if ours - theirs else None,
    )


def _read(path: str, source: Source) -> SavedOutput:
    # As it is: names may have line breaks of any kind.
    text = read_bytes(path).decode("utf-8", "replace")
    saved = read_saved_output(text, source.groups["group_id"].to_pylist())
    if not saved.views:
        why = f"the tool failed: {saved.errors[0]:.200}" if saved.errors else "it has no rows"
        raise CannotTellError(f"{path}: cannot tell what Kafka's tool said: {why}")
    return saved


def _check_is_of_lag(path: str, view: View) -> None:
    if view.what != OFFSETS or view.family == SHARE:
        raise InputUnreadableError(
            f"{path} has no offsets of consumer or streams groups; looked for what "
            f"kafka-consumer-groups or kafka-streams-groups --describe --offsets prints"
        )
