"""Runs of audits in workspaces, as `trend` compares them.

Runs of audits in tables of a catalog, as `--save-tables` writes them, for `trend`.

Audits as a notebook compares them: `open_runs(...).trend()`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_schema
from analytics.engine.part_runs import PartRunner
from analytics.errors import (
    AbsentFileError,
    CannotTellError,
    EnvironmentUnfitError,
    SettingRefusedError,
    WorkspaceError,
)
from analytics.gaps.internal_topics import filters_of
from analytics.library.saved_runs import lacking, settings_digest, whole_partitions
from analytics.library.saved_tables import CLUSTER, PARQUET, RUN_ID, RUNS, Target
from analytics.library.state import Answered
from analytics.locations import absolute_location, join
from analytics.questions.trend.question import TrendSettings, trend
from analytics.questions.trend.runs import AuditedRun
from analytics.redaction.redactor import WITHHELD
from analytics.replay.dump.choices import assumed_in
from analytics.replay.log.ends_at import cleaned_until, leading
from analytics.replay.log.rules import named_release
from analytics.replayed.replayed_workspace import AUDIT, ReplayedWorkspace
from analytics.side_files import read_bytes
from analytics.tables.parted_table import PartedTable
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import SUMMARY, Workspace
from schemas import CONSUMER_OFFSETS, table
from schemas.manifest import cluster_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.questions.question import Answer
    from analytics.tables.parted_table import Order
    from schemas.manifest import Manifest


DATA_LOGS: Final = "logs of data topics"
SNAPSHOTS: Final = "what the cluster answered to snapshot"


def audited_run(location: str, cluster: str | None = None) -> AuditedRun:
    """Return the run in a workspace.

    Args:
        location: The workspace.
        cluster: Of which cluster it is where its dump does not say so.

    Raises:
        InputNotRecognizedError: There is no such folder.
        WorkspaceError: It is no workspace, of another version, or damaged.
        CannotTellError: No audit came to its end in it.
    """
    Workspace(location).manifest()
    return run_in(location, audit_summary(location), cluster)


def run_in(location: str, summary: Mapping[str, Any], cluster: str | None = None) -> AuditedRun:
    """Return the run of an audit whose tables are there, with what its summary is to say.

    Args:
        location: The workspace.
        summary: What `summary.json` says.
        cluster: Of which cluster it is where its dump does not say so.

    Raises:
        WorkspaceError: It is no workspace, of another version, or damaged.
    """
    space = Workspace(location)
    manifest = space.manifest()
    state = ReplayedWorkspace(StoredTables(space), space, manifest)
    lacks = lacking(state.manifest)
    time = summary["as_of"]["time"]
    return AuditedRun(
        name=location,
        cluster=", ".join(cluster_ids(manifest["copies"])) or cluster,
        as_of=None if time is None else datetime.fromisoformat(time),
        tables=StoredTables(space),
        logs=_logs(state.manifest),
        lacks=frozenset(f"{each['topic']}-{each['partition']}" for each in lacks),
        filters=_filters(manifest, summary, location),
        whole_partitions=_numbers(whole_partitions(state)),
        shows_history=not lacks and _shows_history(state.manifest),
        is_redacted=bool(manifest.get("redacted")),
        settings=summary.get("settings"),
        choices=_choices(manifest),
        snapshot_copies=frozenset(each["copy"] for each in manifest.get("snapshots", ())),
        keeps_cleaned=any(each.get("resumed_from") for each in manifest.get("snapshots", ())),
        nodes={
            each["name"]: node
            for each in manifest["copies"]
            if (node := each.get("node_id")) is not None
        },
    )


def filters_in(filters: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    """Return filters as `saved_runs` has them: `groups=parcel-*`."""
    return tuple(f"{option}={each}" for option in sorted(filters) for each in filters[option])


def _choices(manifest: Manifest) -> tuple[str, ...]:
    """Return by which rules, assumptions and lines the workspace was made, where a person chose."""
    release, options = named_release(manifest), manifest["options"]
    copy = options.get("prefer_copy")
    return (
        *(() if release is None else (f"--kafka-version {release}",)),
        *(f"--assume {each}" for each in sorted(assumed_in(manifest))),
        *(() if copy is None else (f"--prefer-copy {copy}",)),
        *(("--strict-high-watermark",) if options.get("strict_high_watermark") else ()),
    )


def _filters(manifest: Manifest, summary: Mapping[str, Any], location: str) -> tuple[str, ...]:
    """Return by which filters the workspace was made, and the audit asked."""
    asked = (alone(each, location) for each in summary.get("filters", ()))
    return tuple(dict.fromkeys((*filters_in(filters_of(manifest)), *asked)))


def alone(text: str, run: str) -> str:
    """Return a filter; one that is withheld is like no other run's."""
    return f"{text} of {run}" if text.endswith(f"={WITHHELD}") else text


def _numbers(partitions: Iterable[int] | None) -> frozenset[int] | None:
    return None if partitions is None else frozenset(partitions)


def _logs(manifest: Manifest) -> frozenset[str]:
    """Return what a dump has that answers rest on."""
    logs = {f"{each['topic']}-{each['partition']}" for each in leading(manifest)}
    if manifest.get("data_partitions"):
        logs.add(DATA_LOGS)
    if manifest.get("snapshots"):
        logs.add(SNAPSHOTS)
    return frozenset(logs)


def _shows_history(manifest: Manifest) -> bool:
    """Return whether every record ever written to the offsets topic is there."""
    rows = [each for each in leading(manifest) if each["topic"] == CONSUMER_OFFSETS]
    return bool(rows) and all(
        each.get("complete_from") == 0 and not cleaned_until(each) for each in rows
    )


def audit_summary(location: str) -> Mapping[str, Any]:
    """Return what an audit that came to its end says of itself: it writes that last.

    Raises:
        AbsentFileError: There is no such folder.
        WorkspaceError: The file is damaged.
        GroupscopeError: It cannot be read.
        CannotTellError: There is none.
    """
    path = join(location, SUMMARY)
    try:
        found: Mapping[str, Any] = json.loads(read_bytes(path))
    except AbsentFileError as error:
        if not Workspace(location).is_there:
            raise AbsentFileError(f"{location}: there is no such folder") from error
        raise not_audited(location) from error
    except ValueError as error:
        raise WorkspaceError(f"{path} cannot be read: {error}") from error
    return found


def not_audited(location: str) -> CannotTellError:
    """Return what is said of a workspace in which no audit came to its end."""
    word = shlex.quote(location)
    return CannotTellError(
        f"{location} was not audited to the end; audit it: groupscope audit {word} --out {word}"
    )


_AT_ONCE: Final = 50_000


@dataclass(frozen=True)
class SavedTables:
    """The tables of a saved run.

    Attributes:
        target: The schema that they are in.
        run: Its row of `saved_runs`.
        rows: How many rows each table of it has that has all columns of its contract.
        read: What was read already.
    """

    target: Target
    run: Mapping[str, Any]
    rows: Mapping[str, int]
    read: dict[tuple[str, tuple[str, ...]], pa.Table] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        """Return whether all of these tables were saved."""
        return all(each in self.rows for each in names)

    def pieces(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of a table, some rows at a time."""
        rows = self._rows(name, tuple(columns))
        yield rows.slice(0, 0)
        for start in range(0, rows.num_rows, _AT_ONCE):
            yield rows.slice(start, _AT_ONCE)

    def parted(self, name: str, order: Order) -> PartedTable:
        """Return a table in order."""
        columns = tuple(each.name for each in table(name).columns)
        return PartedTable.held(order.sorted(self._rows(name, columns)))

    def count(self, *names: str) -> int:
        """Return how many rows tables have together."""
        return sum(self.rows[each] for each in names)

    def _rows(self, name: str, columns: tuple[str, ...]) -> pa.Table:
        key = name, columns
        if key not in self.read:
            saved = self.target.spark.table(self.target.place(name)).where(
                f"{CLUSTER} = '{self.run[CLUSTER]}' and {RUN_ID} = '{self.run[RUN_ID]}'"
            )
            types = arrow_schema(name)
            wanted = pa.schema([types.field(each) for each in columns])
            self.read[key] = saved.select(*columns).toArrow().cast(wanted)
        return self.read[key]


def saved_audits(target: Target) -> list[AuditedRun]:
    """Return the audits that were saved to a schema; runs of other questions are left out.

    Raises:
        OutputRefusedError: There is no such schema.
    """
    target.check()
    if not target.spark.catalog.tableExists(target.place(RUNS)):
        return []
    runs = target.spark.table(target.place(RUNS)).where(f"question = '{AUDIT}'").toArrow()
    return [_run(target, row) for row in runs.to_pylist()]


def _run(target: Target, row: Mapping[str, Any]) -> AuditedRun:
    saved = {each["table"]: each["rows"] for each in row["saved_tables"]}
    whole = {name: rows for name, rows in saved.items() if _is_of_contract(target, name)}
    tables = SavedTables(target, row, whole)
    partitions = row["whole_partitions"]
    as_of: datetime | None = row["as_of"]
    settings = json.loads(row["settings"])
    logs = _saved_logs(tables)
    return AuditedRun(
        name=f"{target.schema}: {row[RUN_ID]}",
        cluster=row[CLUSTER],
        as_of=None if as_of is None else as_of.astimezone(UTC),
        tables=tables,
        logs=logs,
        lacks=frozenset(f"{each['topic']}-{each['partition']}" for each in row["lacks"]),
        filters=tuple(alone(each, row[RUN_ID]) for each in row["filters"]),
        whole_partitions=None if partitions is None else frozenset(partitions),
        # The manifest alone says what compaction took.
        shows_history=False,
        is_redacted=set(settings) == {"sha256"},
        settings=settings_digest(settings),
        snapshot_copies=_snapshot_copies(tables, logs),
        keeps_cleaned=None if logs is not None and SNAPSHOTS in logs else False,
    )


def _is_of_contract(target: Target, name: str) -> bool:
    """Return whether a table there has all columns that its contract has now."""
    there = set(target.spark.table(target.place(name)).columns)
    return {each.name for each in table(name).columns} <= there


def _saved_logs(tables: SavedTables) -> frozenset[str] | None:
    """Return what a dump has that answers rest on, as `audited_run` takes it from a manifest.

    None where the table was not saved that tells.
    """
    if not tables.has("partition_usage", "topics"):
        return None
    logs: set[str] = set()
    for piece in tables.pieces("partition_usage", ["topic", "partition", "is_leading"]):
        mine = piece.filter(piece["is_leading"]).select(["topic", "partition"])
        logs.update(f"{each['topic']}-{each['partition']}" for each in mine.to_pylist())
    if tables.has("data_segments") and tables.count("data_segments"):
        logs.add(DATA_LOGS)
    sources = (
        pc.unique(each["source"]).to_pylist() for each in tables.pieces("topics", ["source"])
    )
    if any("snapshot" in each for each in sources):
        logs.add(SNAPSHOTS)
    return frozenset(logs)


def _snapshot_copies(tables: SavedTables, logs: frozenset[str] | None) -> frozenset[str]:
    """Return the copy of a run that a cluster answered to; of several nothing says which it is."""
    if logs is None or SNAPSHOTS not in logs:
        return frozenset()
    copies = {
        copy
        for piece in tables.pieces("partition_usage", ["copy"])
        for copy in pc.unique(piece["copy"]).to_pylist()
        if copy is not None
    }
    return frozenset(copies) if len(copies) == 1 else frozenset()


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
