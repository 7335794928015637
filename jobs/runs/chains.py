"""What `--dialect checkpoint-delta` does: share state from control records of data partitions.

Each partition is read and folded by itself. Where there is little to read that is done here, else
by Spark, a task a partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.checkpoint_delta.chain_inputs import ChainInput, chain_inputs
from analytics.decode.selection import names_wanted
from analytics.errors import GroupscopeError, InputNotRecognizedError
from analytics.replay.checkpoint_delta.chain_doubts import unseen
from analytics.replay.checkpoint_delta.chain_fold import fold_chains
from analytics.replay.checkpoint_delta.chain_tables import chain_tables
from analytics.spark_worker import on_worker
from analytics.workspace import (
    DATA_LOGS,
    DECODED,
    DIVERGED,
    EVALUATIONS,
    HISTORY,
    STATE,
    Workspace,
)
from jobs.decoded_workspace import DIALECT
from jobs.progress import progress
from jobs.runs.staged_tables import write_rows
from jobs.stored_tables import StoredTables
from jobs.version import VERSION
from jobs.workload import SMALL_BYTES
from reports.layout.nothing import nothing
from reports.row_formats import shown
from reports.share.chain_rows import TABLES, chain_notes, chain_sections
from schemas import table
from schemas.dialects import CHECKPOINT_DELTA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobs.console import Console

DONE, CANNOT_TELL = 0, 3
CHAIN_OPTIONS: Final = (
    *("inputs", "topic_partition", "data_topics", "groups", "exclude_groups", "master", "conf"),
)
"""Options of other questions that are of use here."""
NOTHING: Final = "There is no checkpoint and no delta."
SCHEMA_VERSION: Final = 1
_MOST_NAMED: Final = 5
_REPLACED: Final = (DECODED, DIVERGED, DATA_LOGS, STATE, HISTORY, EVALUATIONS)


@dataclass(frozen=True)
class FoundChains:
    """What the inputs hold.

    Attributes:
        tables: `chain`, `share_batches`, `share_checkpoints`, `share_partitions`.
        unseen: Of each partition of which a part is lost, what: groups may be hidden there.
        given: The INPUTs as given.
    """

    tables: Mapping[str, pa.Table]
    unseen: Sequence[str]
    given: Sequence[str]

    @property
    def cannot_tell(self) -> list[str]:
        """What cannot be told, in words."""
        rows = self.tables["share_partitions"]
        lacking = rows.filter(pc.invert(rows["complete"]))
        said = [
            f"{row['group_id']}: {row['topic']}-{row['partition']}: {row['missing']}"
            for row in lacking.to_pylist()
        ]
        return [*said, *self.unseen]

    @property
    def exit_code(self) -> int:
        """3 where something cannot be told."""
        return CANNOT_TELL if self.cannot_tell else DONE

    def selected(self, groups: Sequence[str], exclude: Sequence[str]) -> FoundChains:
        """Return what is of some groups."""
        if not (groups or exclude):
            return self
        there = pc.unique(self.tables["share_partitions"]["group_id"]).to_pylist()
        wanted = pa.array(names_wanted(there, groups, exclude), pa.string())
        tables = {
            name: rows.filter(pc.is_in(rows["group_id"], wanted))
            for name, rows in self.tables.items()
        }
        return FoundChains(tables, self.unseen, self.given)


def chains_of(  # noqa: PLR0913 - one parameter an option
    console: Console,
    *,
    inputs: Sequence[str],
    out: str | None = None,
    topic_partition: str | None = None,
    data_topics: Sequence[str] = (),
    groups: Sequence[str] = (),
    exclude_groups: Sequence[str] = (),
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> FoundChains:
    """Read INPUTs, or a workspace of the dialect; keep the tables where there is `out`.

    Raises:
        GroupscopeError: An INPUT, the output folder or Spark is not what it has to be.
    """
    kept = dialect_workspace(inputs)
    if kept is not None:
        tables = StoredTables(kept)
        manifest = kept.manifest()
        found = FoundChains(
            {name: tables.read(name) for name in manifest[DIALECT]["rows"]},
            manifest[DIALECT]["unseen"],
            list(inputs),
        )
    else:
        parts = chain_inputs(inputs, topic_partition, data_topics)
        made, unseen_ = _folded(parts, console, master, conf)
        found = FoundChains(made, unseen_, list(inputs))
        if out is not None:
            _keep(Workspace(out), found)
    return found.selected(groups, exclude_groups)


def is_asked(dialect: str | None, inputs: Sequence[str], output_format: str) -> bool:
    """Return whether chains are what is asked about.

    Raises:
        InputNotRecognizedError: The table that is asked for is of the other reading.
    """
    is_so = dialect is not None or dialect_workspace(inputs) is not None
    asked = getattr(output_format, "table", None)
    if asked is not None and is_so != (asked in TABLES):
        only = "only with" if asked in TABLES else "not with"
        raise InputNotRecognizedError(f"--table {asked}: {only} --dialect {CHECKPOINT_DELTA}")
    return is_so


def dialect_workspace(inputs: Sequence[str]) -> Workspace | None:
    """Return the workspace of the dialect that was given, None where INPUTs are something else."""
    for each in inputs:
        try:
            manifest = Workspace(each).manifest()
        except GroupscopeError:
            continue
        if DIALECT in manifest:
            if len(inputs) > 1:
                raise InputNotRecognizedError(f"{each} is a workspace: give it as the only INPUT")
            return Workspace(each)
    return None


def _folded(
    parts: Sequence[ChainInput],
    console: Console,
    master: str | None,
    conf: Mapping[str, str] | None,
) -> tuple[dict[str, pa.Table], list[str]]:
    """Return the tables of all partitions, and what of which cannot be seen."""
    if sum(each.size for each in parts) <= SMALL_BYTES:
        results = [_of_partitions(parts)]
    else:
        from jobs.session import spark_session  # noqa: PLC0415 - where there is little, no Spark

        @on_worker
        def run(numbers: Iterable[int]) -> Iterator[tuple[dict[str, pa.Table], list[str]]]:
            for number in numbers:
                yield _of_partitions([parts[number]])

        with (
            spark_session(console, master=master, conf=conf, small=True) as spark,
            progress(spark, console, "reading"),
        ):
            numbers = spark.sparkContext.parallelize(range(len(parts)), len(parts))
            results = numbers.mapPartitions(run).collect()
    tables = {
        name: pa.concat_tables([found[name] for found, _ in results]).sort_by(
            [(each, "ascending") for each in table(name).key]
        )
        for name in results[0][0]
    }
    return tables, [each for _, unseen_ in results for each in unseen_]


def _of_partitions(parts: Sequence[ChainInput]) -> tuple[dict[str, pa.Table], list[str]]:
    logs = [each.read() for each in parts]
    said = [
        f"{log.topic}-{log.partition}: there may be more groups: {why}"
        for log in logs
        if (why := unseen(log)) is not None
    ]
    return chain_tables(fold_chains(logs)), said


def _keep(space: Workspace, found: FoundChains) -> None:
    """Write a workspace that holds the tables of the dialect, and nothing of a replay."""
    staging = space.prepare()
    try:
        parts = [write_rows(staging, name, rows) for name, rows in found.tables.items()]
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "groupscope_version": VERSION,
            "created_from": list(found.given),
            DIALECT: {
                "name": CHECKPOINT_DELTA,
                "unseen": list(found.unseen),
                "rows": {name: rows.num_rows for name, rows in found.tables.items()},
            },
        }
        staging.publish(parts, _REPLACED, manifest)
    except BaseException:
        staging.discard()
        raise


def chains_answer(console: Console, found: FoundChains, output_format: str) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code; what cannot be told goes to stderr."""
    cannot_tell = found.cannot_tell
    for each in cannot_tell[:_MOST_NAMED]:
        console.error(f"cannot tell: {each}")
    if len(cannot_tell) > _MOST_NAMED:
        console.error(f"cannot tell {len(cannot_tell) - _MOST_NAMED} more: --format json has all")
    said = {
        "dialect": CHECKPOINT_DELTA,
        "input": list(found.given),
        "cannot_tell": cannot_tell,
    }
    if not (found.tables["chain"].num_rows or output_format in {"json", "csv"}):
        return nothing(NOTHING, said), found.exit_code
    sections = chain_sections(found.tables, is_for_programs=output_format in {"json", "csv"})
    answer = shown(sections, output_format, said)
    if output_format in {"json", "csv"}:
        return answer, found.exit_code
    notes = chain_notes(found.tables["chain"])
    return "\n\n".join([answer, *([notes] if notes else [])]), found.exit_code
