"""Evaluations of what was replayed: made by Spark of stored tables and records, and kept.

Where `--out` names a workspace, the tables are kept in its `evaluations/`, beside those of other
questions, and the manifest says of which instant they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from analytics.decode.run.workload import is_small_workspace
from analytics.decode.selection import Selection
from analytics.replay.dump.assumptions import assumed_in
from analytics.replay.dump.coverage import coverage_of, log_starts, topics_beside
from analytics.replay.graph import TableStep, needed_for, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.as_of import above_log_starts, cut_all
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import STATE
from analytics.tables.decoded_frames import decoded_frames
from analytics.tables.selected_frames import selected_frames
from analytics.tables.stored_tables import folder_of
from analytics.tables.table_frames import table_frame
from analytics.tables.written_tables import collected
from analytics.workspace import Workspace
from jobs.runs.replay.kept_evaluations import keep_evaluations
from jobs.runs.replay.replayed_instant import replayed_instant
from jobs.spark.progress import progress
from jobs.spark.session import spark_session
from schemas import table, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.cli.console import Console
    from jobs.runs.replay.replayed import Replayed

_REPLAY = (*STATE, *HISTORY)


@dataclass(frozen=True)
class Evaluation:
    """What is to be evaluated.

    Attributes:
        steps: How tables are made, of what a replay has and of what is given.
        makes: The tables that are wanted.
        given: Thresholds and the like, by name.
        optional: Tables that are read where they are stored, and not made for this.
    """

    steps: Sequence[TableStep]
    makes: Sequence[str]
    given: Mapping[str, Any]
    optional: Sequence[str] = ()

    def needs(self) -> tuple[str, ...]:
        """Return the state and history tables it cannot do without."""
        made = {step.output for step in self.steps}
        asked = {name for step in self.steps for name in step.inputs} - made - set(self.optional)
        stored = {step.output for step in _REPLAY} & tables().keys()
        return tuple(sorted(asked & stored))


def evaluate(
    console: Console,
    replayed: Replayed,
    wanted: Evaluation,
    *,
    out: str | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    **_: Any,  # noqa: ANN401 - options of the replay before
) -> dict[str, pa.Table]:
    """Return the tables that are wanted, sorted by their keys; keep them where there is `--out`.

    Raises:
        GroupscopeError: Spark or the output folder is not what it has to be.
    """
    small = is_small_workspace(replayed.manifest)
    with (
        spark_session(console, master=master, conf=conf, small=small) as spark,
        progress(spark, console, "evaluating"),
    ):
        steps = _steps(wanted, replayed)
        made = resolve(steps, {**wanted.given, **_given(spark, replayed, steps)})
        found = {name: collected(made[name], name) for name in wanted.makes}
    if out is not None:
        kept = {name: rows for name, rows in found.items() if name in tables()}
        keep_evaluations(Workspace(out), kept, replayed)
    return found


def _steps(wanted: Evaluation, replayed: Replayed) -> list[TableStep]:
    """Return what is made: what is stored is read, what it was made of is made again."""
    own = {step.output for step in wanted.steps}
    asked = {name for step in wanted.steps for name in step.inputs} - own - set(wanted.optional)
    missing = [name for name in asked if name not in tables() or not replayed.tables.has(name)]
    stored = {step.output for step in _REPLAY if step.output not in missing} & tables().keys()
    rest = [step for step in _REPLAY if step.output not in stored]
    return [*needed_for(rest, missing), *wanted.steps]


def _given(spark: SparkSession, replayed: Replayed, steps: Sequence[TableStep]) -> dict[str, Any]:
    """Return stored tables and what else a replay is made of, as far as the steps take it."""
    made = {step.output for step in steps}
    asked = {name for step in steps for name in step.inputs} - made
    instant = replayed_instant(replayed.as_of)
    given: dict[str, Any] = {
        "rules": replay_rules(replayed.release),
        "coverage": coverage_of(
            replayed.manifest,
            instant,
            replayed.source,
            replayed.lines,
            assumed_in(replayed.manifest),
        ),
    }
    if "other_topics" in asked:
        given["other_topics"] = [topics_beside(spark, replayed.manifest, ())]
    if "cut" in asked:
        starts = log_starts(replayed.manifest) if instant.is_end else {}
        given["cut"] = cut_all(above_log_starts(_records(spark, replayed), starts), instant)
    for name in asked & tables().keys():
        given[name] = _stored(spark, replayed, name)
    return given


def _records(spark: SparkSession, replayed: Replayed) -> Mapping[str, DataFrame]:
    frames = decoded_frames(spark, replayed.source, replayed.lines)
    selection = replayed.tables.selection
    if selection == Selection():
        return frames
    return selected_frames(spark, frames, selection)


def _stored(spark: SparkSession, replayed: Replayed, name: str) -> DataFrame:
    """Return a stored table as far as its groups are wanted; empty where it is not there."""
    contract = table(name)
    if not replayed.tables.has(name):
        return spark.createDataFrame([], contract.ddl(not_null=False))
    workspace = replayed.tables.workspace
    frame = table_frame(spark, workspace, folder_of(name), contract)
    selection = replayed.tables.selection
    named = {column.name for column in contract.columns}
    if "group_id" not in named or not (selection.groups or selection.exclude_groups):
        return frame
    groups = pc.unique(replayed.tables.read(name, ["group_id"])["group_id"]).to_pylist()
    return frame.where(F.col("group_id").isin(groups))
