"""What `--dialect` does: share state as designs of Kafka had it.

Each partition is read and folded by itself. Where there is little to read that is done here, else
by Spark, a task a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.decode.selection import names_wanted
from analytics.decode.workload import SMALL_BYTES
from analytics.errors import GroupscopeError, InputNotRecognizedError
from analytics.replayed.dialect_state import DialectState
from analytics.seeds.checkpoint_delta.chain_fold import fold_chains
from analytics.seeds.checkpoint_delta.chain_tables import chain_tables, unseen
from analytics.seeds.checkpoint_delta.inputs import ChainInput, chain_inputs
from analytics.seeds.kip_932_text import read_state, state_plan, state_slices, text_tables
from analytics.spark_tasks import run_tasks
from analytics.tables.stored_tables import StoredTables, write_rows
from analytics.version import SCHEMA_VERSION, VERSION
from analytics.workspace import FOLDERS, Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.spark.session import progress
from reports.answers.share import MAIN, TABLES, dialect_notes, dialect_sections
from reports.layout.output_format import width_of
from reports.plain_text import nothing
from reports.row_formats import Text, render, rendered
from schemas import table
from schemas.catalog import CHECKPOINT_DELTA, KIP_932_TEXT

if TYPE_CHECKING:
    from analytics.dump.files.model import Plan
    from jobs.cli.console import Console
    from schemas.manifest import Dialect, DialectManifest

# What is read and folded of each dialect: parts that are independent of each other.

TablesAndNotes = tuple[dict[str, "pa.Table"], list[str]]
"""Tables by name, and what else cannot be told."""


@dataclass(frozen=True)
class Work:
    """What there is to do.

    Attributes:
        parts: How many there are.
        size: Bytes of segments that are read.
        run: Reads and folds the parts of these numbers.
    """

    parts: int
    size: int
    run: Callable[[Sequence[int]], TablesAndNotes]


def chain_work(
    inputs: Sequence[str], topic_partition: str | None, data_topics: Sequence[str]
) -> Work:
    """Return the work on chains of checkpoints and deltas: a part a data partition."""
    parts = chain_inputs(inputs, topic_partition, data_topics)
    return Work(len(parts), sum(each.size for each in parts), partial(_chains, parts))


def text_work(
    inputs: Sequence[str], topic_partition: str | None, data_topics: Sequence[str]
) -> Work:
    """Return the work on share state of the text: a part a partition of the state topic."""
    planned, topics = state_plan(inputs, topic_partition)
    slices = state_slices(planned)
    size = sum(each.to_position - each.from_position for each in planned.slices)
    return Work(len(slices), size, partial(_text, planned, topics, data_topics))


WORK: Mapping[str, Callable[[Sequence[str], str | None, Sequence[str]], Work]] = {
    CHECKPOINT_DELTA: chain_work,
    KIP_932_TEXT: text_work,
}
"""By dialect."""


def _chains(parts: Sequence[ChainInput], numbers: Sequence[int]) -> TablesAndNotes:
    logs = [parts[number].read() for number in numbers]
    said = [
        f"{log.topic}-{log.partition}: there may be more groups: {why}"
        for log in logs
        if (why := unseen(log)) is not None
    ]
    return chain_tables(fold_chains(logs)), said


def _text(
    planned: Plan, topics: Mapping[str, str], data_topics: Sequence[str], numbers: Sequence[int]
) -> TablesAndNotes:
    slices = list(state_slices(planned).items())
    logs = [read_state(planned, *slices[number]) for number in numbers]
    tables = text_tables(logs, topics)
    if data_topics:
        wanted = set(names_wanted(list(topics.values()), data_topics))
        tables = {
            name: rows.filter([each in wanted for each in rows["topic"].to_pylist()])
            for name, rows in tables.items()
        }
    said = [
        f"__share_group_state-{log.partition}: records that cannot be read: {log.unread}"
        for log in logs
        if log.unread
    ]
    return tables, said


DIALECT_OPTIONS: Final = (
    *("inputs", "topic_partition", "data_topics", "groups", "exclude_groups", "master", "conf"),
)
"""Options of other questions that are of use here."""
NOTHING: Final = "There is no share state in this dialect."
_MOST_NAMED: Final = 5


def _exit_code(state: DialectState) -> int:
    """Return 3 where something cannot be told."""
    return CANNOT_TELL if state.cannot_tell else DONE


def dialect_state(  # noqa: PLR0913 - one parameter an option
    console: Console,
    *,
    dialect: str | None,
    inputs: Sequence[str],
    out: str | None = None,
    topic_partition: str | None = None,
    data_topics: Sequence[str] = (),
    groups: Sequence[str] = (),
    exclude_groups: Sequence[str] = (),
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> DialectState:
    """Read INPUTs, or a workspace of the dialect; keep the tables where there is `out`.

    Raises:
        GroupscopeError: An INPUT, the output folder or Spark is not what it has to be.
    """
    kept = dialect_workspace(inputs)
    if kept is not None:
        workspace, said = kept
        tables = StoredTables(workspace)
        made = {name: tables.read(name) for name in said["rows"]}
        found = DialectState(said["name"], made, said["unseen"], list(inputs))
        if dialect not in {None, found.dialect}:
            raise InputNotRecognizedError(f"{inputs[0]} is of the dialect {found.dialect}")
    else:
        assert dialect is not None
        work = WORK[dialect](inputs, topic_partition, data_topics)
        found = DialectState(dialect, *_results(work, console, master, conf), list(inputs))
        if out is not None:
            _keep(Workspace(out), found)
    return found.selected(groups, exclude_groups)


def is_asked(dialect: str | None, inputs: Sequence[str], output_format: str) -> bool:
    """Return whether a dialect is what is asked about.

    Raises:
        InputNotRecognizedError: The table that is asked for is of the other reading.
    """
    is_so = dialect is not None or dialect_workspace(inputs) is not None
    asked = getattr(output_format, "table", None)
    if asked is not None and is_so != (asked in TABLES):
        only = "only with" if asked in TABLES else "not with"
        raise InputNotRecognizedError(f"--table {asked}: {only} --dialect")
    return is_so


def dialect_workspace(inputs: Sequence[str]) -> tuple[Workspace, Dialect] | None:
    """Return the workspace of a dialect that was given, and what its manifest says of it.

    None where INPUTs are something else.
    """
    for each in inputs:
        try:
            manifest = Workspace(each).any_manifest()
        except GroupscopeError:
            continue
        if "dialect" in manifest:
            if len(inputs) > 1:
                raise InputNotRecognizedError(f"{each} is a workspace: give it as the only INPUT")
            return Workspace(each), manifest["dialect"]
    return None


def _results(
    work: Work, console: Console, master: str | None, conf: Mapping[str, str] | None
) -> TablesAndNotes:
    """Return the tables of all parts, and what of them cannot be told."""
    if work.size <= SMALL_BYTES:
        results = [work.run(range(work.parts))]
    else:
        from jobs.spark.session import spark_session  # noqa: PLC0415 - where there is little, no Spark

        def run(number: int) -> TablesAndNotes:
            return work.run([number])

        with (
            spark_session(console, master=master, conf=conf, small=True) as spark,
            progress(spark, console, "reading"),
        ):
            results = run_tasks(spark, work.parts, run)
    tables = {
        name: pa.concat_tables([found[name] for found, _ in results]).sort_by(
            [(each, "ascending") for each in table(name).key]
        )
        for name in results[0][0]
    }
    return tables, [each for _, said in results for each in said]


def _keep(space: Workspace, state: DialectState) -> None:
    """Write a workspace that holds the tables of the dialect, and nothing of a replay."""
    staging = space.prepare()
    try:
        parts = [write_rows(staging, name, rows) for name, rows in state.tables.items()]
        manifest: DialectManifest = {
            "schema_version": SCHEMA_VERSION,
            "groupscope_version": VERSION,
            "created_from": list(state.inputs),
            "dialect": {
                "name": state.dialect,
                "unseen": list(state.unseen),
                "rows": {name: rows.num_rows for name, rows in state.tables.items()},
            },
        }
        staging.publish(parts, FOLDERS, manifest)
    except BaseException:
        staging.discard()
        raise


def dialect_answer(console: Console, state: DialectState, output_format: str) -> tuple[Text, int]:
    """Return what goes to stdout, and the exit code; what cannot be told goes to stderr."""
    cannot_tell = state.cannot_tell
    for each in cannot_tell[:_MOST_NAMED]:
        console.error(f"cannot tell: {each}")
    if len(cannot_tell) > _MOST_NAMED:
        console.error(f"cannot tell {len(cannot_tell) - _MOST_NAMED} more: --format json has all")
    said = {
        "dialect": state.dialect,
        "input": list(state.inputs),
        "cannot_tell": cannot_tell,
    }
    asked = getattr(output_format, "table", None)
    if asked is not None and asked not in state.tables:
        raise InputNotRecognizedError(f"--table {asked}: not with --dialect {state.dialect}")
    if not (state.tables[MAIN].num_rows or output_format in {"json", "csv"}):
        return nothing(NOTHING, said, width_of(output_format)), _exit_code(state)
    sections = dialect_sections(state.tables, is_for_programs=output_format in {"json", "csv"})
    if output_format in {"json", "csv"}:
        return rendered(sections, output_format, said), _exit_code(state)
    answer = render(sections, output_format, said)
    if state.is_of_releases:
        console.say("hint: these snapshots are as releases write them: leave out --dialect")
    notes = dialect_notes(
        {name: rows for name, rows in state.tables.items() if asked in {None, name}},
        width_of(output_format),
    )
    return "\n\n".join([answer, *([notes] if notes else [])]), _exit_code(state)
