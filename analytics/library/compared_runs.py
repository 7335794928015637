"""Audits as a notebook compares them: `open_runs(...).trend()`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING
from weakref import finalize

from analytics.engine.part_runs import PartRunner
from analytics.errors import EnvironmentUnfitError, SettingRefusedError
from analytics.library.audited_runs import audited_run
from analytics.library.saved_audits import saved_audits
from analytics.library.saved_tables import PARQUET, Target
from analytics.library.state import Answered
from analytics.locations import absolute_location
from analytics.questions.trend.question import TrendSettings, trend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.questions.question import Answer
    from analytics.questions.trend.runs import AuditedRun


@dataclass(frozen=True)
class ComparedRuns:
    """Runs of audits, of any number of clusters, in any order.

    Attributes:
        runs: Each is where it is (`name`), of a cluster (`cluster`) and an instant (`as_of`).
    """

    runs: tuple[AuditedRun, ...]
    _parts: str = field(default_factory=lambda: mkdtemp(prefix="groupscope-"), repr=False)

    def __post_init__(self) -> None:
        """Let the folder of parts go with the runs: nobody closes them."""
        finalize(self, rmtree, self._parts, ignore_errors=True)

    def trend(self, disk_bytes: int | None = None, most: int = 20) -> Answered:
        """Return how audits changed from one to the next, as `groupscope trend` does.

        Args:
            disk_bytes: Size of the disk of each broker; None where nobody knows.
            most: So many groups and partitions of each cluster are the worst.

        Returns:
            Tables as polars has them: `answer.trend_runs`, `answer.trend_findings`,
            `answer.trend_disks` and the others of docs/trend.md.

        Raises:
            WorkspaceError: A table cannot be read.
        """
        settings = TrendSettings(disk_bytes, most)
        return _Trend(self, trend(self.runs, settings, PartRunner(self._parts)))

    def __repr__(self) -> str:
        return f"<runs of audits: {', '.join(each.name for each in self.runs)}>"

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(each.name)}</li>" for each in self.runs)
        return f"<p><b>runs of audits</b></p><ul>{items}</ul>"


class _Trend(Answered):
    """The answer: its parts are there as long as the runs are, which it holds."""

    def __init__(self, runs: ComparedRuns, answer: Answer) -> None:
        super().__init__("trend", answer, None, None)
        self._runs = runs

    def save(
        self,
        schema: str,
        *,
        tables: Sequence[str] | None = None,  # noqa: ARG002 - of the method there
        cluster: str | None = None,  # noqa: ARG002
        table_format: str = PARQUET,  # noqa: ARG002
    ) -> str:
        """Refuse: what is saved has a run of its own, and this is of several.

        Raises:
            EnvironmentUnfitError: Always.
        """
        raise EnvironmentUnfitError(
            f"{schema}: a trend is of several runs and is not saved as one; save the audits"
        )


def open_runs(
    *locations: str,
    cluster: str | None = None,
    from_tables: str | None = None,
    spark: SparkSession | None = None,
) -> ComparedRuns:
    """Open runs of audits to compare them.

    Args:
        *locations: Workspaces in which audits came to their end.
        cluster: Of which cluster those are whose dumps do not say so.
        from_tables: `SCHEMA` or `CATALOG.SCHEMA`, of which all saved audits are runs, too.
        spark: The session that has the catalog, as long as its runs are compared.

    Raises:
        SettingRefusedError: There is no run, or a schema without a session.
        InputNotRecognizedError: There is no such folder, or no such schema.
        WorkspaceError: It is no workspace, of another version, or damaged.
        CannotTellError: No audit came to its end in it.
    """
    if from_tables is not None and spark is None:
        raise SettingRefusedError("from_tables is of a catalog of Spark's: give a session (spark)")
    runs = [audited_run(each, cluster) for each in dict.fromkeys(map(absolute_location, locations))]
    if from_tables is not None and spark is not None:
        runs += saved_audits(Target(spark, from_tables))
    if not runs:
        raise SettingRefusedError("there is no run to compare: name workspaces of audits")
    return ComparedRuns(tuple(runs))
