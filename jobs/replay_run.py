"""What `replay` does: decode where that is not done, replay on Spark, publish the state tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from analytics.dump.inputs import recognize
from analytics.dump.manifest import iso_time
from analytics.errors import InputNotRecognizedError
from analytics.replay.as_of import AsOf
from analytics.replay.rules import NEWEST, replay_rules
from analytics.replay.state import state_tables
from analytics.workspace import Part, Workspace
from jobs.decode_run import decode_into
from jobs.decoded_frames import decoded_frames
from jobs.progress import progress
from jobs.replay_coverage import coverage_of, topics_of_directories
from jobs.session import spark_session
from schemas import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from analytics.replay.rules import ReplayRules
    from analytics.workspace import Staging
    from jobs.console import Console

STATE = "state"


@dataclass(frozen=True)
class ReplayResult:
    """A finished run: its manifest, and 3 where an INPUT could not be read whole."""

    manifest: Mapping[str, Any]
    exit_code: int


def replay_into(  # noqa: PLR0913 - one parameter an option
    out: str,
    console: Console,
    *,
    inputs: Sequence[str],
    as_of: int | None = None,
    ends: Mapping[tuple[str, int], int] | None = None,
    kafka_version: str | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    **selection: Any,  # noqa: ANN401 - options of decoding, handed through
) -> ReplayResult:
    """Replay INPUTs into the workspace `out`.

    Raises:
        GroupscopeError: An INPUT, the output folder or Spark is not what it has to be.
    """
    source, exit_code = _decoded(out, console, inputs, selection, master, conf)
    manifest = source.manifest()
    release = kafka_version or manifest["kafka_version"].get("at_least")
    if release is None:
        console.say(f"nothing shows which release wrote this: taken as Kafka {NEWEST}")
    elif kafka_version is None:
        console.detail(f"taken as written by Kafka {release} or newer")
    instant = AsOf(ends or {}, as_of)
    staging = Workspace(out).prepare()
    try:
        with spark_session(console, master=master, conf=conf) as spark:
            with progress(spark, console, "replaying"):
                parts = _replay(spark, source, staging, instant, replay_rules(release), manifest)
            manifest["replay"] = _said(instant, release, parts)
            staging.publish(parts, [STATE], manifest)
    except BaseException:
        # Also where the person interrupts: nothing half-written may stay.
        staging.discard()
        raise
    return ReplayResult(manifest, exit_code)


def _decoded(
    out: str,
    console: Console,
    inputs: Sequence[str],
    selection: Mapping[str, Any],
    master: str | None,
    conf: Mapping[str, str] | None,
) -> tuple[Workspace, int]:
    """Return a workspace with decoded tables, decoding into `out` where INPUTs are a dump."""
    found = recognize(inputs, selection["topic_partition"])
    if found.workspaces:
        if len(inputs) > 1:
            raise InputNotRecognizedError(
                f"{found.workspaces[0]}: is a workspace, and is replayed alone"
            )
        return Workspace(found.workspaces[0]), 0
    result = decode_into(out, console, inputs=inputs, master=master, conf=conf, **selection)
    return Workspace(out), result.exit_code(None)


def _replay(
    spark: SparkSession,
    source: Workspace,
    staging: Staging,
    instant: AsOf,
    rules: ReplayRules,
    manifest: Mapping[str, Any],
) -> list[Part]:
    parts: list[Part] = []

    def write(name: str, frame: DataFrame) -> DataFrame:
        path = f"{staging.location}/{name}"
        # One file, sorted by key: equal input gives equal bytes.
        ordered = frame.repartition(1).sortWithinPartitions(*table(name).key)
        ordered.write.parquet(path)
        written = spark.read.schema(table(name).ddl(not_null=False)).parquet(path)
        parts.extend(_parts(staging, name, written.count()))
        return written

    state_tables(
        decoded_frames(spark, source),
        instant,
        rules,
        coverage=coverage_of(manifest, instant),
        other_topics=[topics_of_directories(spark, manifest)],
        keep=write,
    )
    return parts


def _parts(staging: Staging, name: str, rows: int) -> list[Part]:
    filesystem = staging.workspace.filesystem
    folder = staging.workspace.path(f"{staging.name}/{name}")
    files = sorted(
        each.path
        for each in filesystem.get_file_info(fs.FileSelector(folder))
        if each.path.endswith(".parquet")
    )
    return [Part(f"{STATE}/{name}", path, rows) for path in files]


def _said(instant: AsOf, release: str | None, parts: Sequence[Part]) -> dict[str, Any]:
    return {
        "as_of": {
            "time": iso_time(instant.timestamp_ms),
            "offsets": {
                f"{topic}-{number}": end for (topic, number), end in sorted(instant.offsets.items())
            },
        },
        "kafka_version": release or NEWEST,
        "rows": {part.table.removeprefix(f"{STATE}/"): part.rows for part in parts},
    }
