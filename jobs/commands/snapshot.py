"""The command `snapshot`: a dump of a running cluster, by the Kafka protocol, held against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analytics.errors import SettingRefusedError
from analytics.locations import is_uri, local_path
from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.options.answer import fail_on_option
from jobs.cli.options.shared import output_options, spark_conf_option, summary_format_options

if TYPE_CHECKING:
    from analytics.questions.question import Answer
    from analytics.snapshot.cluster_connection import ClusterConnection
    from analytics.snapshot.log_extents import Pace
    from analytics.snapshot.log_reading import LogReader
    from reports.layout.output_format import OutputFormat
    from schemas.snapshot import Snapshot

EPILOG = """
\b
Examples:
  groupscope snapshot --bootstrap-server localhost:9092 --out dump
  groupscope snapshot --bootstrap-server broker-1:9093,broker-2:9093 \\
      --command-config client.properties --max-rate 20000000 --out dump
  groupscope snapshot --bootstrap-server localhost:9092 --resume dump --out dump-2
  groupscope snapshot --bootstrap-server broker-1:9092 --master spark://host:7077 \\
      --parallel 16 --out /shared/dump
"""


def _local_folder(ctx: click.Context, parameter: click.Parameter, value: str) -> Path:
    if not value or (is_uri(value) and not value.lower().startswith("file:")):
        raise click.BadParameter("a folder of this machine is needed", ctx=ctx, param=parameter)
    return Path(local_path(value))


def _earlier_folder(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> Path | None:
    return None if value is None else _local_folder(ctx, parameter, value)


@click.command(epilog=EPILOG)
@click.option(
    "--bootstrap-server",
    metavar="HOST:PORT",
    required=True,
    help="Where the cluster is found; several with commas.",
)
@click.option(
    "--command-config",
    metavar="FILE",
    help="Client properties as Kafka's tools take them: SASL, and TLS with PEM, PKCS12 or JKS.",
)
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    callback=_local_folder,
    help="Write the dump into this folder, which is new or empty.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1, max=3600),
    default=30.0,
    show_default=True,
    help="Give up what is not answered within this time.",
)
@click.option(
    "--max-rate",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Fetch no more bytes a second than this, on average.",
)
@click.option(
    "--max-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Fetch no more than this of all logs; the exit code is 3 where that is not all.",
)
@click.option(
    "--parallel",
    metavar="N",
    type=click.IntRange(min=1, max=32),
    default=4,
    show_default=True,
    help="Read so many partitions at once, each in answers of at most 4 MiB.",
)
@click.option(
    "--resume",
    metavar="DUMP",
    callback=_earlier_folder,
    help="Fetch only what is new since this earlier snapshot, which stays as it is.",
)
@click.option(
    "--check/--no-check",
    "is_checked",
    default=True,
    show_default=True,
    help="Ask for all groups once logs are read, and hold the snapshot against the answers.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Read partitions in tasks on this Spark master, which see DIR, too; all else stays here.",
)
@spark_conf_option
@fail_on_option()
@summary_format_options
@output_options
@pass_console
def snapshot(
    console: Console,
    /,
    *,
    bootstrap_server: str,
    command_config: str | None,
    out: Path,
    timeout: float,
    fail_on: str,
    output_format: OutputFormat,
    **options: Any,  # noqa: ANN401
) -> int:
    """Take a dump of a running cluster.

    Fetches the record batches of __consumer_offsets, __share_group_state and __transaction_state as
    they lie in the brokers' logs, up to where these end when it begins, and writes them as a log
    directory that every command takes as INPUT. snapshot.json beside them is what the cluster says
    of brokers, topics, partitions, groups and settings: answers take it from there;
    end-offsets.csv is the same as a file for --end-offsets. At last it is asked for all groups, and
    what differs from the snapshot is shown with what explains it. Reads only: joins no group,
    commits nothing, creates no topic. Needs kafka-python 3.
    """
    # --help answers without the client library and numpy.
    from analytics.snapshot.cluster_connection import (  # noqa: PLC0415
        ClusterConnection,
        check_client_library,
        client_settings,
    )
    from analytics.snapshot.log_folder import check_out, earlier_snapshot  # noqa: PLC0415
    from analytics.snapshot.taking import Limits, take_snapshot  # noqa: PLC0415
    from jobs.cli.settings_files import read_client_properties  # noqa: PLC0415
    from reports.run_summary import snapshot_json, snapshot_text, unread_text  # noqa: PLC0415

    check_client_library()
    _check_master(options)
    properties = read_client_properties(command_config)
    settings = client_settings(properties, command_config or "--command-config")
    if settings.ignored:
        console.say(f"{command_config}: not used here: {', '.join(settings.ignored)}")
    check_out(out)
    earlier = None if options["resume"] is None else earlier_snapshot(options["resume"])
    if earlier is not None:
        earlier.check_out(out)
    code, answer, is_checked = DONE, None, options["is_checked"]
    with ClusterConnection(bootstrap_server, settings, timeout) as cluster:
        limits = Limits(
            bytes_a_second=options["max_rate"],
            most_bytes=options["max_bytes"],
            parallel=options["parallel"],
        )
        with _reader_kind(console, options["master"], options["conf"]) as kind:
            reader = limits.reader(cluster, kind)
            taken = take_snapshot(
                cluster, out, _now, console.say, reader, is_checked=is_checked, earlier=earlier
            )
        if is_checked:
            code, answer = _held_against(console, cluster, reader, taken, out, fail_on)
    if output_format == "json":
        print_text(snapshot_json(taken, None if answer is None else _differences(answer)))
    else:
        held = None if answer is None else answer.summary
        print_text(snapshot_text(taken, str(out), output_format.width, held))
    if taken.unread:
        console.error(unread_text(taken))
        return CANNOT_TELL
    return code


def _check_master(options: Mapping[str, Any]) -> None:
    """Check that options fit together.

    Raises:
        SettingRefusedError: Two do not.
    """
    if options["master"] is None and options["conf"]:
        raise SettingRefusedError("--conf is for --master: without it no Spark is started")
    if options["master"] is not None and options["max_bytes"] is not None:
        raise SettingRefusedError(
            "--max-bytes is not for --master: tasks do not know of each other how much is left; "
            "leave one of both out"
        )


@contextmanager
def _reader_kind(
    console: Console, master: str | None, conf: Mapping[str, str]
) -> Iterator[Callable[[ClusterConnection, Pace], LogReader]]:
    """Hand over what makes a reader of logs: in tasks on Spark where a master is named."""
    if master is None:
        from analytics.snapshot.log_reading import LogReader  # noqa: PLC0415

        yield LogReader
        return
    from analytics.snapshot.reading_tasks import TaskReader  # noqa: PLC0415
    from jobs.spark.session import progress, spark_session  # noqa: PLC0415

    with (
        spark_session(console, master=master, conf=conf, small=True) as spark,
        progress(spark, console, "reading"),
    ):
        yield partial(TaskReader, spark)


def _differences(answer: Answer) -> dict[str, Any]:
    """Return where the snapshot and its cluster differ, as JSON has it."""
    from analytics.gaps.gap import gap_documents  # noqa: PLC0415
    from analytics.questions.cluster.question import TABLE  # noqa: PLC0415

    return {
        **answer.summary,
        "rows": answer.rows(TABLE).whole().to_pylist(),
        "cannot_tell": answer.cannot_tell,
        "gaps": gap_documents(answer.gaps),
    }


def _now() -> datetime:
    return datetime.now(UTC)


def _held_against(
    console: Console,
    cluster: ClusterConnection,
    reader: LogReader,
    snapshot: Snapshot,
    out: Path,
    fail_on: str,
) -> tuple[int, Answer]:
    """Return the exit code and where the snapshot differs; asks again for what nothing explains."""
    from analytics.questions.cluster.question import (  # noqa: PLC0415
        CLUSTER,
        answer_of,
        answers_in,
        unexplained_groups,
    )
    from analytics.snapshot.looks import second_look, with_second_look  # noqa: PLC0415
    from jobs.asking import answer_exit_code, failing, report_answer  # noqa: PLC0415
    from jobs.workspaces.replayed import replayed  # noqa: PLC0415

    with replayed(
        console, inputs=[str(out)], needs=CLUSTER.needs, has_hint=False, fail_on=fail_on
    ) as state:
        answers = answers_in(state)
        answer = answer_of(state, answers)
        if again := unexplained_groups(state, answer):
            second_look(cluster, reader, snapshot, again, out, _now)
            answer = answer_of(state, with_second_look(answers, out))
        report_answer(console, answer)
        code = answer_exit_code(state, answer) or failing(console, state, answer)
    return code, answer
