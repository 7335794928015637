"""A dump opened from a notebook or a job of one's own.

What commands do, on a session that is there already: it is used as it is and left alone. What the
dump lacks is never silently complete: rows say it in `complete` and `missing`.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from analytics.decode.decoding import decode_dump
from analytics.decode.elections import known_leaders
from analytics.decode.publication import published
from analytics.decode.selection import Selection
from analytics.decode.tasks import Settings
from analytics.decode.workload import is_small_plan, is_small_workspace
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.copies.slices import Edges
from analytics.dump.files.inputs import recognize
from analytics.dump.inspection.found_losses import with_archived_losses
from analytics.dump.records.raw_rows_files import rows_in_frame, rows_in_table
from analytics.engine.cut_tables import framed
from analytics.engine.replay_work import ReplayWork, replay_workspace
from analytics.errors import EnvironmentUnfitError, InputNotRecognizedError
from analytics.gaps.internal_topics import filters_of, filters_sentence
from analytics.library.state import State
from analytics.package_archive import ship_packages_as_to
from analytics.replay.dump.choices import (
    COMPLETE_ARCHIVE,
    assumed_of,
    check_assumptions,
    checked_release,
    instant_milliseconds,
    moment,
)
from analytics.replay.dump.followed_lines import followed_lines, of_history, read_before_swaps
from analytics.replay.dump.times import remarks
from analytics.replay.log.log_times import AsOf
from analytics.replay.log.rules import chosen_release
from analytics.tables.decoded_records import (
    absolute,
    decoded_workspace,
    refuse_without_records,
    refuse_without_tables,
)
from analytics.workspace import EVALUATIONS, HISTORY, STATE, Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.dump.files.inputs import Inputs
    from analytics.dump.records.raw_rows_files import RawRows
    from schemas.manifest import Manifest

SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""What the tables rely on; set on a session of ours beside the caller's."""


class Dump:
    """INPUTs as commands take them, and DataFrames, recognised and not yet read.

    Attributes:
        inputs: As given: folders, files, URIs, or a workspace that `decode` or `replay` wrote; and
            how DataFrames and a table are called where something is said of them.
        said: What they were taken for, a sentence each.
    """

    def __init__(
        self,
        inputs: Sequence[str | DataFrame],
        work: str | None = None,
        table: str | None = None,
    ) -> None:
        self._found = _recognized(inputs, table)
        self.inputs = self._found.arguments
        if self._found.workspaces and len(self.inputs) > 1:
            raise InputNotRecognizedError(
                f"{self._found.workspaces[0]} is a workspace: give it as the only input"
            )
        self.said = tuple(self._found.descriptions)
        self._work = tempfile.mkdtemp(prefix="groupscope-", dir=work)
        # A DataFrame may still read what an unnamed dump wrote: it goes when Python ends.
        atexit.register(self.close)
        self._decoded: dict[bool, Workspace] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was written for this dump; its DataFrames cannot be read any more."""
        atexit.unregister(self.close)
        shutil.rmtree(self._work, ignore_errors=True)

    def replay(
        self,
        spark: SparkSession | None = None,
        *,
        as_of: datetime | str | int | None = None,
        ends: Mapping[tuple[str, int], int] | None = None,
        kafka_version: str | None = None,
        assume: Sequence[str] = (),
        tables: Sequence[str] | None = None,
    ) -> State:
        """Return what the coordinators knew at an instant.

        Args:
            spark: The session: it is used, not changed and not stopped. A small dump needs none:
                its tables are then DataFrames of polars. Rows of a DataFrame are read in its own
                session, which is also the one that is used where none is given.
            as_of: The instant: a datetime with a zone, ISO 8601, or epoch milliseconds. None is the
                end of the dump.
            ends: End offsets by topic and partition of internal topics, instead of a time.
            kafka_version: Whose rules apply; by default the release that a workspace was replayed
                by, or that a dump shows.
            assume: What you vouch for where the dump cannot tell (``--assume``).
            tables: The state and history tables that are wanted; None is all of them.

        Raises:
            EnvironmentUnfitError: There is no session, and the dump needs one.
            CannotTellError: The instant is before the dump's first record, or in a partition that
                the dump has no copy of.
            SettingRefusedError: Nothing is called so that is assumed, or it is no release.
            GroupscopeError: An input is not what it has to be.
        """
        check_assumptions(assume)
        if kafka_version is not None:
            checked_release(kafka_version)
        time_ms = None if as_of is None else instant_milliseconds(as_of)
        frames = (each.frame for each in self._found.raw_rows if each.frame is not None)
        spark = spark or next((each.sparkSession for each in frames), None)
        session = None if spark is None else _session(spark)
        self._found = _with_tables_read(self._found, spark)
        source = self._decode(session, is_end=time_ms is None and not ends)
        manifest = source.manifest()
        history = of_history(manifest)
        filtered = filters_sentence(filters_of(manifest))
        said = (*remarks(time_ms, ends or {}, history), *([filtered] if filtered else ()))
        release = chosen_release(kafka_version, self._given_manifest(), manifest)
        lines = followed_lines(manifest, None if time_ms is None else moment(time_ms))
        instant = framed(AsOf(ends or {}, time_ms), source, lines, read_before_swaps(history))
        assumed = assumed_of(manifest, assume)
        work = ReplayWork(
            instant,
            release.release,
            (),
            {},
            tables,
            lines,
            assumed,
            is_release_named=release.named is not None,
        )
        manifest = with_archived_losses(manifest, is_whole=COMPLETE_ARCHIVE in work.assumed)
        work = work.with_homes(source, manifest)
        folder = tempfile.mkdtemp(prefix="state-", dir=self._work)
        staging = Workspace(folder).prepare()
        on = None if is_small_workspace(manifest) else _needed(session)
        parts = replay_workspace(source, staging, work, manifest, on)
        manifest["replay"] = {**work.metadata(parts), "decoded_in": absolute(source)}
        manifest.pop("evaluations", None)
        staging.publish(parts, [STATE, HISTORY, EVALUATIONS], manifest)
        again = partial(self._replay_again, spark, kafka_version, assume)
        is_end = time_ms is None and not ends
        return State(
            spark,
            Workspace(folder),
            said,
            release.named,
            # What is asked of the time before and after is asked of the whole.
            replay_at=again if is_end else None,
        )

    def _replay_again(
        self,
        spark: SparkSession | None,
        kafka_version: str | None,
        assume: Sequence[str],
        as_of: datetime | None,
        tables: Sequence[str],
    ) -> State:
        """Replay at another instant; None is the end."""
        return self.replay(
            spark, as_of=as_of, kafka_version=kafka_version, assume=assume, tables=tables
        )

    def _given_manifest(self) -> Manifest | None:
        """Return the manifest of the workspace that was given; None where that is a dump."""
        given = self._found.workspaces
        return Workspace(given[0]).manifest() if given else None

    def _decode(self, spark: SparkSession | None, *, is_end: bool) -> Workspace:
        """Return a workspace with decoded tables; a dump is decoded once for each kind of instant.

        What lies below the log start was the broker's at instants before it was deleted.
        """
        if self._found.workspaces:
            given = Workspace(self._found.workspaces[0])
            refuse_without_records(given)
            source = decoded_workspace(given)
            refuse_without_tables(source)
            return source
        if is_end not in self._decoded:
            folder = tempfile.mkdtemp(prefix="decoded-", dir=self._work)
            staging = Workspace(folder).prepare()
            options = PlanOptions(edges=Edges(keep_below_log_start=not is_end))
            settings = Settings(staging.location, Selection())
            planned = plan(self._found, options, known_leaders)
            rows = self._found.raw_rows
            if rows or not is_small_plan(planned):
                spark = _needed(spark)
            decoding = decode_dump(spark, planned, rows, settings, options)
            published(staging, self._found, planned, decoding, settings, options)
            self._decoded[is_end] = Workspace(folder)
        return self._decoded[is_end]


def open_dump(*inputs: str | DataFrame, table: str | None = None, work: str | None = None) -> Dump:
    """Open a dump: what commands take as INPUT, or archived rows as Spark has them.

    Args:
        inputs: Folders, files or URIs of one dump, or one workspace; or DataFrames with columns of
            Spark's Kafka source: ``key``, ``value`` (binary), ``topic`` (string), ``partition``
            (int), ``offset`` (bigint) and, where rows have it, ``timestamp`` (timestamp, or
            milliseconds). Other columns are not read.
        table: A table, or view, of such rows: ``NAME``, ``SCHEMA.NAME`` or
            ``CATALOG.SCHEMA.NAME``, in the session that `Dump.replay` is given.
        work: A folder for tables while they are needed; on a cluster one that all its machines
            share. By default a temporary one, which goes when Python ends.

    Raises:
        InputNotRecognizedError: An input is nothing that is known; or a column of a DataFrame is
            missing, or has another type.
    """
    return Dump(inputs, work, table)


def _recognized(inputs: Sequence[str | DataFrame], table: str | None) -> Inputs:
    """Return what was given, told apart.

    Raises:
        InputNotRecognizedError: An input is nothing that is known.
    """
    named = [each for each in inputs if isinstance(each, str)]
    rows = [rows_in_frame(each) for each in inputs if not isinstance(each, str)]
    if table is not None:
        rows.append(rows_in_table(f"table {table}", table))
    if not (named or rows):
        raise InputNotRecognizedError("nothing was given to open: a folder, a file, a DataFrame")
    found = recognize(named)
    for each in rows:
        if each.frame is not None:
            _checked(each)
    return replace(
        found,
        arguments=(*found.arguments, *(each.argument for each in rows)),
        raw_rows=(*found.raw_rows, *rows),
        descriptions=(*found.descriptions, *(f"{each.argument}: archived rows" for each in rows)),
    )


def _checked(rows: RawRows) -> None:
    """Refuse what is no DataFrame of Spark, or has other columns than archived rows have.

    Raises:
        InputNotRecognizedError: It is not, or it has.
    """
    if not hasattr(rows.frame, "sparkSession"):
        raise InputNotRecognizedError(
            f"{type(rows.frame).__name__}: neither a path nor a DataFrame of Spark; of another "
            f"kind of table make one with spark.createDataFrame"
        )
    # PySpark is heavy: logs are read without it.
    from analytics.dump.records.raw_rows import check_frame  # noqa: PLC0415

    check_frame(rows)


def _with_tables_read(inputs: Inputs, spark: SparkSession | None) -> Inputs:
    """Return inputs whose tables are looked up in the caller's session, which knows its views.

    Raises:
        InputNotRecognizedError: It knows no such table.
    """
    if spark is None or not inputs.raw_rows:
        return inputs
    from analytics.dump.records.raw_rows import with_table_read  # noqa: PLC0415 - as above

    return replace(inputs, raw_rows=tuple(with_table_read(spark, each) for each in inputs.raw_rows))


def _needed(spark: SparkSession | None) -> SparkSession:
    """Return the session that what is to be done takes.

    Raises:
        EnvironmentUnfitError: None was given.
    """
    if spark is None:
        raise EnvironmentUnfitError(
            "this dump is large, or holds archived rows: give replay() a session of Spark"
        )
    return spark


def _session(spark: SparkSession) -> SparkSession:
    """Return a session beside the caller's, on the same Spark, with the settings tables rely on."""
    session: Any = spark.newSession()
    for name, value in SESSION.items():
        session.conf.set(name, value)
    ship_packages_as_to(spark, session)
    found: SparkSession = session
    return found
