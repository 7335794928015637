"""What `replay` does: decode where that is not done, replay on Spark, publish the state tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.decode.selection import Selection
from analytics.dump.files.inputs import recognize
from analytics.dump.inspection.archived_losses import with_archived_losses
from analytics.errors import InputNotRecognizedError
from analytics.replay.graph import Step, needed_for
from analytics.replay.history.tables import HISTORY as HISTORY_TABLES
from analytics.replay.log.as_of import above_log_starts
from analytics.replay.log.instants import AsOf
from analytics.replay.log.rules import NEWEST, replay_rules
from analytics.replay.state import STATE as STATE_TABLES
from analytics.replay.state import replay_tables
from analytics.workspace import EVALUATIONS, HISTORY, STATE, Part, Workspace
from jobs.cli import assumptions
from jobs.cli.assumptions import COMPLETE_ARCHIVE, assumed_of
from jobs.cli.dump_time import remarks, resolved
from jobs.cli.instant import END, BeforeEnd, as_of_said, moment, shown
from jobs.cli.topic_ids import read_topic_ids
from jobs.runs.decode.run import DONE, DecodeResult, decode_into
from jobs.runs.replay.coverage import coverage_of, log_starts, topics_beside
from jobs.runs.replay.followed_lines import followed_lines, lines_said, sentences
from jobs.spark.progress import progress
from jobs.spark.session import one_session, spark_session
from jobs.spark.workload import is_small_workspace
from jobs.workspaces.decoded_frames import decoded_frames
from jobs.workspaces.decoded_workspace import (
    DECODED_IN,
    absolute,
    decoded_workspace,
    refuse_without_records,
)
from jobs.workspaces.selected_frames import selected_frames
from jobs.workspaces.staged_tables import staged_file, write_rows
from jobs.workspaces.stored_tables import folder_of
from jobs.workspaces.table_frames import table_frame
from jobs.workspaces.written_tables import collected, write_frame
from schemas import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from analytics.replay.log.lines import FollowedLine
    from analytics.workspace import Staging
    from jobs.cli.console import Console
    from jobs.cli.topic_ids import NamedTopic

DIVERGENCES = "divergences"
AT_ONCE = 3
"""Tables made at the same time: planning one is work for a single core of this machine."""
_OF_NAMES = ("groups", "exclude_groups", "data_topics")
_FILTERS = (*_OF_NAMES, "topics", "partitions")


@dataclass(frozen=True)
class ReplayResult:
    """A finished run: its manifest, and 3 where an INPUT could not be read whole."""

    manifest: Mapping[str, Any]
    exit_code: int


@dataclass(frozen=True)
class _Wanted:
    """What a replay was asked for.

    Attributes:
        instant: Which records count.
        release: Whose rules apply.
        side_file: Names of topic ids that a person gave.
        filters: Options that leave records of a workspace out; empty leaves out nothing.
        needs: The tables that are made; None is all.
        lines: Followed instead of those that survived.
        assumed: What archived rows do not tell and a person vouches for.
    """

    instant: AsOf
    release: str
    side_file: Sequence[NamedTopic]
    filters: Mapping[str, tuple[Any, ...]]
    needs: Sequence[str] | None = None
    lines: Sequence[FollowedLine] = ()
    assumed: Sequence[str] = ()

    @property
    def steps(self) -> list[Step]:
        """What is made."""
        steps = [*STATE_TABLES, *HISTORY_TABLES]
        return steps if self.needs is None else needed_for(steps, self.needs)

    def records(
        self, spark: SparkSession, frames: Mapping[str, DataFrame]
    ) -> Mapping[str, DataFrame]:
        """Return the decoded tables as far as they are wanted."""
        if not any(self.filters.values()):
            return frames
        return selected_frames(
            spark,
            frames,
            Selection(*(self.filters[name] for name in _OF_NAMES)),
            self.filters["topics"],
            self.filters["partitions"],
        )

    def said(self, parts: Iterable[Part]) -> dict[str, Any]:
        """Return the section `replay` of the manifest."""
        return {
            "as_of": as_of_said(self.instant.timestamp_ms, self.instant.offsets),
            "lines": lines_said(self.lines),
            "kafka_version": self.release,
            "assumed": list(self.assumed),
            "topic_ids": [list(each) for each in self.side_file],
            "filters": {name: list(each) for name, each in self.filters.items() if each},
            "rows": {part.table.rpartition("/")[2]: part.rows for part in parts},
        }


@one_session()
def replay_into(  # noqa: PLR0913 - one parameter an option
    out: str,
    console: Console,
    *,
    inputs: Sequence[str],
    as_of: int | BeforeEnd | str | None = None,
    ends: Mapping[tuple[str, int], int] | None = None,
    kafka_version: str | None = None,
    topic_ids: str | None = None,
    assume: Sequence[str] = (),
    needs: Sequence[str] | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    **selection: Any,  # noqa: ANN401 - options of decoding, handed through
) -> ReplayResult:
    """Replay INPUTs into the workspace `out`; all tables, or only those that are needed.

    Raises:
        GroupscopeError: An INPUT, the output folder or Spark is not what it has to be.
    """
    is_end = as_of in (None, END) and not ends
    # What lies below the log start was the broker's at instants before it was deleted.
    source, result = _decoded(
        out,
        console,
        inputs,
        {**selection, "keep_below_log_start": not is_end},
        master,
        conf,
    )
    manifest = source.manifest()
    as_of = resolved(as_of, manifest)
    for each in remarks(as_of, ends or {}, manifest):
        console.warn(each)
    time_ms = as_of if isinstance(as_of, int) else None
    instant = AsOf(ends or {}, time_ms)
    release = kafka_version or manifest["kafka_version"].get("at_least")
    if release is None:
        console.say(
            f"nothing shows which release wrote this dump: the rules of Kafka {NEWEST} apply"
        )
    elif kafka_version is None:
        console.detail(f"Kafka {release} or newer wrote this dump")
    wanted = _Wanted(
        instant,
        release or NEWEST,
        read_topic_ids(topic_ids) if topic_ids else [],
        # A dump was filtered while it was read.
        {} if result else {name: selection.get(name, ()) for name in _FILTERS},
        needs,
        followed_lines(manifest, None if time_ms is None else moment(time_ms)),
        assumed_of(manifest, assume),
    )
    manifest = with_archived_losses(manifest, is_whole=COMPLETE_ARCHIVE in wanted.assumed)
    for each in assumptions.sentences(wanted.assumed):
        console.say(each)
    for each in sentences(wanted.lines, "" if time_ms is None else shown(moment(time_ms))):
        console.say(each)
    staging = Workspace(out).prepare()
    try:
        small = is_small_workspace(manifest)
        with spark_session(console, master=master, conf=conf, small=small) as spark:
            with progress(spark, console, "replaying"):
                parts = _replay(spark, source, staging, wanted, manifest)
            manifest["replay"] = wanted.said(parts)
            if result is None:
                manifest["replay"][DECODED_IN] = absolute(source)
            # What was evaluated is of another instant.
            manifest.pop(EVALUATIONS, None)
            staging.publish(parts, [STATE, HISTORY, EVALUATIONS], manifest)
    except BaseException:
        # Also where the person interrupts: nothing half-written may stay.
        staging.discard()
        raise
    return ReplayResult(manifest, result.exit_code(None) if result else DONE)


def _decoded(
    out: str,
    console: Console,
    inputs: Sequence[str],
    selection: Mapping[str, Any],
    master: str | None,
    conf: Mapping[str, str] | None,
) -> tuple[Workspace, DecodeResult | None]:
    """Return a workspace with decoded tables; a dump is decoded into `out`, with that result."""
    found = recognize(inputs, selection.get("topic_partition"))
    if found.workspaces:
        if len(inputs) > 1:
            raise InputNotRecognizedError(
                f"{found.workspaces[0]} is a workspace: give it as the only INPUT"
            )
        given = Workspace(found.workspaces[0])
        refuse_without_records(given)
        return decoded_workspace(given), None
    result = decode_into(out, console, inputs=inputs, master=master, conf=conf, **selection)
    return Workspace(out), result


def _replay(
    spark: SparkSession,
    source: Workspace,
    staging: Staging,
    wanted: _Wanted,
    manifest: Mapping[str, Any],
) -> list[Part]:
    parts: list[Part] = []
    is_small = is_small_workspace(manifest)

    def write(name: str, frame: DataFrame) -> DataFrame:
        # What is made of little is little: it is brought here, for which Spark writes no file.
        part = (
            write_rows(staging, name, collected(frame, name))
            if is_small
            else write_frame(staging, name, frame)
        )
        parts.append(part)
        return table_frame(spark, staging.workspace, staged_file(staging, name), table(name))

    replay_tables(
        above_log_starts(
            wanted.records(spark, decoded_frames(spark, source, wanted.lines)),
            log_starts(manifest) if wanted.instant.is_end else {},
        ),
        wanted.instant,
        replay_rules(wanted.release),
        steps=wanted.steps,
        coverage=coverage_of(manifest, wanted.instant, source, wanted.lines, wanted.assumed),
        other_topics=[topics_beside(spark, manifest, wanted.side_file)],
        keep=write,
        at_once=AT_ONCE,
    )
    # The folder of history is replaced, and decoding has put a table there.
    diverged = table_frame(spark, source, folder_of(DIVERGENCES), table(DIVERGENCES))
    write(DIVERGENCES, diverged)
    # Tables are done in any order; state comes before history.
    return sorted(parts, key=lambda part: (part.table.startswith(HISTORY), part.table))
