"""A replayed state as a notebook has it: its tables, and the questions that can be asked of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

import polars as pl

from analytics.decode.run.workload import is_small_workspace
from analytics.engine.part_runs import PartRunner
from analytics.gaps.uncertain_metadata import uncertain_metadata
from analytics.library.answered import Answered, shown_tables, table_frame
from analytics.questions.balance.question import BALANCE
from analytics.questions.data_quality.question import DATA_QUALITY
from analytics.questions.describe.question import DESCRIBE
from analytics.questions.diff.question import DIFF
from analytics.questions.expiration.question import EXPIRATION
from analytics.questions.lag.question import LAG
from analytics.questions.list.question import LIST
from analytics.questions.question import Question
from analytics.questions.rebalances.question import REBALANCES
from analytics.questions.registry import QUESTIONS, question
from analytics.questions.restore.question import RESTORE
from analytics.questions.share.question import SHARE
from analytics.questions.timeline.question import TIMELINE
from analytics.questions.usage.question import USAGE
from analytics.replayed.given_settings import GivenSettings, Settings
from analytics.replayed.replayed_workspace import ReplayedWorkspace
from analytics.seeds.region.question import REGION
from analytics.spark_tasks import run_tasks
from analytics.tables.decoded_records import decoded_workspace
from analytics.tables.stored_tables import StoredTables, folder_of
from schemas import table, tables
from schemas.names import did_you_mean, nearest_name
from schemas.thresholds import GivenThresholds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.workspace import Workspace

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
        remarks: What has to be said of the instant, a sentence each.
    """

    timeline = Asking(TIMELINE)
    diff = Asking(DIFF)
    describe = Asking(DESCRIBE)
    restore = Asking(RESTORE)
    expiration = Asking(EXPIRATION)
    balance = Asking(BALANCE)
    rebalances = Asking(REBALANCES)
    lag = Asking(LAG)
    share = Asking(SHARE)
    usage = Asking(USAGE)
    data_quality = Asking(DATA_QUALITY)
    list = Asking(LIST)
    region = Asking(REGION)

    def __init__(
        self,
        spark: SparkSession | None,
        workspace: Workspace,
        remarks: tuple[str, ...],
        kafka_version: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._spark = spark
        self._kafka_version = kafka_version
        self._workspace = workspace
        self._settings = settings or Settings()
        self.manifest: Mapping[str, Any] = workspace.manifest()
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
        state = self.replayed
        answer = question.ask(state, settings)
        uncertain = uncertain_metadata(state, question.needs_of(settings))
        answer = replace(answer, doubts=(*answer.doubts, *uncertain))
        return Answered(question.name, answer, state, self._spark)

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
        )

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the dump lacks of the internal topics, a sentence a partition; empty: nothing."""
        absent = [
            f"{topic}-{number} is not in the dump"
            for topic, numbers in self.manifest["absent_partitions"].items()
            for number in numbers
        ]
        lost = [
            each["lacks"]
            for each in self.manifest["partitions"]
            if each.get("is_leading", True) and each.get("lacks")
        ]
        return (*absent, *lost)

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
