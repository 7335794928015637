"""A replayed state as a notebook has it: its tables, its questions, and what answers them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

import polars as pl

from analytics.decode.selection import Selection
from analytics.decode.workload import is_small_workspace
from analytics.engine.part_runs import PartRunner
from analytics.errors import EnvironmentUnfitError
from analytics.gaps.gap import TABLE as GAPS
from analytics.gaps.gap import gap_rows
from analytics.gaps.internal_topics import left_out_of
from analytics.gaps.uncertain_metadata import uncertain_metadata
from analytics.library.saved_runs import lacking, run_of
from analytics.library.saved_tables import PARQUET, Target, table_frame
from analytics.questions.balance.question import BALANCE
from analytics.questions.cluster.question import CLUSTER
from analytics.questions.data_quality.question import DATA_QUALITY
from analytics.questions.describe.question import DESCRIBE, LIST
from analytics.questions.diff.question import DIFF
from analytics.questions.expiration.question import EXPIRATION
from analytics.questions.forensics.question import FORENSICS, ROWS_OF_STATES
from analytics.questions.lag.question import LAG
from analytics.questions.question import QUESTIONS, Question, question
from analytics.questions.rebalances.question import REBALANCES
from analytics.questions.restore.question import RESTORE
from analytics.questions.share.question import SHARE
from analytics.questions.timeline.question import TIMELINE
from analytics.questions.usage.question import USAGE
from analytics.replay.dump.times import last_time
from analytics.replayed.given_settings import GivenSettings, Settings
from analytics.replayed.replayed_workspace import ReplayedWorkspace, keep_evaluations
from analytics.seeds.region.question import REGION
from analytics.spark_tasks import run_tasks
from analytics.tables.decoded_records import decoded_workspace
from analytics.tables.parted_table import PartedTable, PartedTables
from analytics.tables.stored_tables import StoredTables, folder_of
from analytics.workspace import Workspace
from schemas import table, tables
from schemas.evaluation_rules import GivenThresholds
from schemas.names import did_you_mean, nearest_name

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from analytics.questions.forensics.incident import Window
    from analytics.questions.question import Answer

# What a question was answered with, as a notebook has it: each table an attribute.


class Answered:
    """An answer; `answer.assignment_balance` is a table of it, `answer.tables` has their names.

    With a session a table is a DataFrame of Spark, without one of polars, with the columns of its
    contract (docs/tables.md) and times in UTC. `to_polars` and `to_pandas` give it as that.

    Attributes:
        question: The name of the question.
        cannot_tell: What the dump does not hold the answer to, in the words of the command, one
            sentence each. Where it names a group, a row that is absent proves nothing.
        gaps: The same as a table, by code: where, what, and why (docs/gaps.md).
        warnings: What may change how the tables are read, one sentence each.
        statements: By which rules and settings the question was answered, one sentence each.
        summary: What the command's JSON has beside the tables.
    """

    def __init__(
        self,
        question: str,
        answer: Answer,
        state: ReplayedWorkspace | None,
        spark: SparkSession | None,
        settings: Any = None,  # noqa: ANN401 - of each question its own
    ) -> None:
        self.question = question
        self._spark, self._state, self._settings = spark, state, settings
        self.cannot_tell: tuple[str, ...] = answer.cannot_tell
        self.warnings: tuple[str, ...] = answer.warnings
        self.statements: tuple[str, ...] = answer.statements
        self.summary: Mapping[str, Any] = answer.summary
        self._figures = answer.figures
        self._rows: Mapping[str, pa.Table] = answer.tables
        self._counts = {name: answer.rows(name).num_rows for name in answer.tables}
        self._frames: dict[str, Any] = {}
        self._gap_rows = gap_rows({question: answer.gaps})
        if spark is not None and state is not None:
            self._frames = _frames(
                {**answer.long_tables, GAPS: PartedTable.held(self._gap_rows)}, state, spark
            )

    @property
    def figures(self) -> Mapping[str, Any]:
        """What the command's text is made of beside the tables, as it is; tables are Arrow's."""
        return {
            name: each.whole() if isinstance(each, PartedTable) else each
            for name, each in self._figures.items()
        }

    @property
    def gaps(self) -> Any:  # noqa: ANN401 - of Spark, or of polars
        """What the dump does not hold the answer to, a row each: the table `gaps`."""
        if GAPS in self._frames:
            return self._frames[GAPS]
        return pl.DataFrame(pl.from_arrow(self._gap_rows))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._rows)

    def table(self, name: str) -> Any:  # noqa: ANN401 - of Spark, or of polars
        """Return a table by name.

        Raises:
            KeyError: The answer has no such table.
        """
        self._check(name)
        return self._frames[name] if name in self._frames else self.to_polars(name)

    def to_arrow(self, name: str) -> pa.Table:
        """Return a table as Arrow has it.

        Raises:
            KeyError: The answer has no such table.
        """
        self._check(name)
        return self._rows[name]

    def to_polars(self, name: str) -> pl.DataFrame:
        """Return a table as a DataFrame of polars.

        Raises:
            KeyError: The answer has no such table.
        """
        return pl.DataFrame(pl.from_arrow(self.to_arrow(name)))

    def to_pandas(self, name: str) -> pd.DataFrame:
        """Return a table as a DataFrame of pandas.

        Raises:
            KeyError: The answer has no such table.
        """
        frame: pd.DataFrame = self.to_arrow(name).to_pandas()
        return frame

    def save(
        self,
        schema: str,
        *,
        tables: Sequence[str] | None = None,
        cluster: str | None = None,
        table_format: str = PARQUET,
    ) -> str:
        """Save tables of the answer to a schema of a catalog, as `State.save` those of a state.

        The gaps are saved, too, as the table `gaps`.

        Raises:
            KeyError: The answer has no such table.
            GroupscopeError: As `State.save`.
        """
        names = (*self.tables, GAPS) if tables is None else tuple(tables)
        for name in names:
            if name != GAPS:
                self._check(name)
        target = Target(session_to_save_in(self._spark), schema, table_format)
        # With a session there is a state.
        assert self._state is not None
        rows = {**self._counts, GAPS: self._gap_rows.num_rows}
        asked = {"settings": self._settings, "given": self._state.settings}
        run = run_of(self._state, self.question, asked, cluster=cluster)
        target.save(run, {name: self._frames[name] for name in names}, rows)
        return run.run_id

    def _check(self, name: str) -> None:
        if name not in self._rows:
            hint = did_you_mean(name, self._rows, "there are")
            raise KeyError(f"the answer to {self.question} has no table {name!r}: {hint}")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of Spark, or of polars
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._rows]

    def __repr__(self) -> str:
        tables = ", ".join(f"{name}: {rows:,}" for name, rows in self._counts.items())
        return f"<answer to {self.question}: {tables}{self._gaps()}>"

    def _gaps(self) -> str:
        number = len(self.cannot_tell)
        return f"; {number:,} {'thing' if number == 1 else 'things'} it cannot tell" * bool(number)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{rows:,}</td></tr>"
            for name, rows in self._counts.items()
        )
        items = "".join(f"<li>{escape(each)}</li>" for each in self.cannot_tell)
        gaps = f"<p>cannot tell:</p><ul>{items}</ul>" if items else ""
        heads = "<tr><th>table</th><th>rows</th></tr>"
        return f"<p><b>{escape(self.question)}</b></p><table>{heads}{rows}</table>{gaps}"


def session_to_save_in(spark: SparkSession | None) -> SparkSession:
    """Return the session, whose catalogs tables are saved to.

    Raises:
        EnvironmentUnfitError: There is none.
    """
    if spark is None:
        raise EnvironmentUnfitError("a catalog is Spark's: give replay() a session to save tables")
    return spark


def _frames(
    tables: Mapping[str, PartedTable], state: ReplayedWorkspace, spark: SparkSession
) -> dict[str, Any]:
    """Return tables as DataFrames; files behind them stay as long as the dump is open."""
    beside = Path(state.tables.workspace.location).parent
    space = Workspace(tempfile.mkdtemp(prefix="answers-", dir=beside))
    keep_evaluations(space, PartedTables(tables), state, "notebook")
    return {name: table_frame(spark, space, folder_of(name), table(name)) for name in tables}


def shown_tables(tables: Sequence[str]) -> str:
    """Return the tables of a state as a notebook shows them."""
    return "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in tables) + "</ul>"


# A replayed state as a notebook has it: its tables, and the questions that can be asked of it.

P = ParamSpec("P")


class Asking(Generic[P]):
    """A question as a method of the state: its parameters are the question's settings."""

    def __init__(self, question: Question[P, Any]) -> None:
        self._question = question
        self.__doc__ = question.settings.__doc__

    def __get__(self, state: State, _owner: type[State]) -> Callable[P, Answered]:
        return partial(state.answer_to, self._question)


class State:
    """What the coordinators knew; each table of the replay is an attribute.

    `state.committed_offsets`, `state.groups`, `state.offset_history`: DataFrames of the caller's
    session, or of polars where there is none, with the columns of the contract (`schemas/tables/`,
    docs/tables.md), times in UTC. Where the dump lacks records, `complete` is false and `missing`
    says what.

    Each question of the commands is a method: `state.expiration(retention_minutes=(1440,))`, or by
    its name `state.ask("expiration", retention_minutes=(1440,))`.

    Attributes:
        manifest: What was read, how far it can be trusted, and the instant.
        remarks: What has to be said of the instant, and what the workspace was made without, a
            sentence each.
    """

    timeline = Asking(TIMELINE)
    diff = Asking(DIFF)
    describe = Asking(DESCRIBE)
    restore = Asking(RESTORE)
    forensics = Asking(FORENSICS)
    expiration = Asking(EXPIRATION)
    balance = Asking(BALANCE)
    rebalances = Asking(REBALANCES)
    lag = Asking(LAG)
    share = Asking(SHARE)
    usage = Asking(USAGE)
    data_quality = Asking(DATA_QUALITY)
    cluster = Asking(CLUSTER)
    list = Asking(LIST)
    region = Asking(REGION)

    def __init__(
        self,
        spark: SparkSession | None,
        workspace: Workspace,
        remarks: tuple[str, ...],
        kafka_version: str | None = None,
        settings: Settings | None = None,
        replay_at: Callable[[datetime | None, Sequence[str]], State] | None = None,
    ) -> None:
        self._spark = spark
        self._kafka_version = kafka_version
        self._replay_at = replay_at
        self._workspace = workspace
        self._settings = settings or Settings()
        self.manifest = workspace.manifest()
        self.remarks = remarks

    def ask(self, name: str, **settings: Any) -> Answered:  # noqa: ANN401 - of each question its own
        """Ask a question by its name ("lag"), with its settings.

        Args:
            name: Of the question, as the command has it.
            **settings: The settings that are not to be as by default; see the method of that name.

        Raises:
            UnknownQuestionError: There is no such question.
            TypeError: The question has no such setting.
            GroupscopeError: A side file is not what it has to be, a table that is needed was not
                replayed, or the dump does not hold the answer.
        """
        wanted = question(name)
        known = wanted.setting_names
        for each in settings:
            if each not in known:
                hint = did_you_mean(each, known, "it has")
                raise TypeError(f"{name} has no setting {each!r}: {hint}")
        return self.answer_to(wanted, **settings)

    def answer_to(self, question: Question[P, Any], *args: P.args, **kwargs: P.kwargs) -> Answered:
        """Answer a question, which may be one of your own.

        Raises:
            GroupscopeError: As `ask`.
        """
        settings = question.settings(*args, **kwargs)
        if getattr(settings, "kafka_version", "") is None:
            settings = replace(settings, kafka_version=self._kafka_version)
        if getattr(settings, "states", "") is None and self._replay_at is not None:
            settings = replace(settings, states=partial(self._states_around, self._replay_at))
        state = self.replayed
        answer = question.ask(state, settings)
        uncertain = uncertain_metadata(state, question.needs_of(settings))
        left_out = left_out_of(self.manifest, Selection.of_options(vars(settings)))
        answer = replace(answer, doubts=(*answer.doubts, *left_out, *uncertain))
        return Answered(question.name, answer, state, self._spark, settings)

    def _states_around(
        self,
        replay_at: Callable[[datetime | None, Sequence[str]], State],
        window: Window,
        groups: Sequence[str],
    ) -> tuple[ReplayedWorkspace, ReplayedWorkspace]:
        """Return the states of some groups before and after the time around an incident."""
        last = last_time(self.manifest)
        end = None if last is None or window.end >= last else window.end
        before, after = (
            replace(replay_at(each, ROWS_OF_STATES).replayed, settings=self._settings).of_groups(
                groups
            )
            for each in (window.begin, end)
        )
        return before, after

    @property
    def replayed(self) -> ReplayedWorkspace:
        """The state as questions take another one: `state.diff(since=earlier.replayed)`."""
        return ReplayedWorkspace(
            StoredTables(self._workspace),
            decoded_workspace(self._workspace),
            self.manifest,
            self._settings,
            self._runner,
        )

    @property
    def _runner(self) -> PartRunner:
        """What makes answers: in tasks of the caller's session where there is much to do."""
        if self._spark is None or is_small_workspace(self.manifest):
            return PartRunner()
        # Files of answers stay as long as the dump is open.
        beside = Path(self._workspace.location).parent
        folder = tempfile.mkdtemp(prefix="answers-", dir=beside)
        return PartRunner(folder, partial(run_tasks, self._spark))

    def with_settings(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        groups: Mapping[str, Mapping[str, str]] | None = None,
        thresholds: Mapping[str, GivenThresholds] | None = None,
    ) -> State:
        """Return the same state, of which questions are answered by settings of your own.

        Args:
            settings: Brokers' settings by Kafka's names, as `--config` has them.
            groups: Settings of single groups, likewise.
            thresholds: Of rules, by the question they belong to, likewise.
        """
        given = GivenSettings(settings or {}, groups or {}, thresholds or {})
        return State(
            self._spark,
            self._workspace,
            self.remarks,
            self._kafka_version,
            replace(self._settings, from_file=given),
            self._replay_at,
        )

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the dump lacks of the internal topics, a sentence a partition; empty: nothing."""
        return tuple(each["words"] for each in lacking(self.manifest))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that were made."""
        stored = StoredTables(self._workspace)
        made = (name for name in tables() if tables()[name].kind in {"state", "history"})
        return tuple(name for name in made if stored.has(name))

    def table(self, name: str) -> Any:  # noqa: ANN401 - of Spark, or of polars
        """Return a table by name.

        Raises:
            KeyError: The replay made no such table.
        """
        if name not in self.tables:
            raise KeyError(f"{name} is no table of this replay: there are {', '.join(self.tables)}")
        if self._spark is None:
            return pl.DataFrame(pl.from_arrow(StoredTables(self._workspace).read(name)))
        return table_frame(self._spark, self._workspace, folder_of(name), table(name))

    def save(
        self,
        schema: str,
        *,
        tables: Sequence[str] | None = None,
        cluster: str | None = None,
        table_format: str = PARQUET,
    ) -> str:
        """Save tables to a schema of a catalog of the session, beside those of other runs.

        Each has the columns of its contract and `cluster`, `run_id` and `as_of`. What was read and
        asked alike has one id: saved again, it takes its own place (docs/history.md).

        Args:
            schema: `SCHEMA` or `CATALOG.SCHEMA`; it has to be there. Tables in it have their names
                of here, and are made where they are not there yet.
            tables: The tables that are saved; None is all of the state.
            cluster: What the cluster is called; by default the id that the dump has.
            table_format: What tables are made as: "parquet", "delta", "iceberg".

        Returns:
            The id of the run.

        Raises:
            KeyError: The replay made no such table.
            EnvironmentUnfitError: There is no session.
            OutputRefusedError: There is no such schema or format, a table there has other columns,
                or what has that name there is another cluster. Nothing is written.
            SettingRefusedError: The dump has no id of its cluster and none is named, or a name
                cannot be kept.
        """
        names = self.tables if tables is None else tuple(tables)
        spark = session_to_save_in(self._spark)
        frames = {name: self.table(name) for name in names}
        run = run_of(self.replayed, "replay", cluster=cluster)
        stored = StoredTables(self._workspace)
        counts = {name: stored.count(name) for name in names}
        Target(spark, schema, table_format).save(run, frames, counts)
        return run.run_id

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of Spark, or of polars
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in tables():
            near = nearest_name(name, (*self.tables, *QUESTIONS))
            hint = f": did you mean {near!r}?" if near else ""
            raise AttributeError(f"a state has no table or question {name!r}{hint}")
        return self.table(name)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self.tables]

    def __repr__(self) -> str:
        return f"<state of {self._workspace.location}: {', '.join(self.tables)}>"

    def _repr_html_(self) -> str:
        return f"<p><b>state</b></p>{shown_tables(self.tables)}"
