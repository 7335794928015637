"""The command `usage`: what fills the internal topics, and who writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import (
    Needed,
    fail_on_option,
    max_undecoded_option,
    rows_options,
    table_option,
)
from jobs.cli.options.shared import (
    Size,
    in_order,
    input_options,
    inputs_argument,
    named_groups_options,
    out_option,
    output_options,
    spark_options,
)
from jobs.cli.options.state import assume_option, instant_options
from jobs.cli.settings_files import settings_options

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope usage examples/kafka-4.3.1-failover
  groupscope usage examples/kafka-4.3.1-failover --by group --top 5
"""
TABLES = (
    *("committers", "one_shot_groups", "group_deletions", "coordinator_load", "size_limits"),
    *("offset_deletions", "record_growth", "clock_differences"),
    *("log_cleaning", "partition_usage", "topic_usage", "usage_growth"),
)
BY = ("record-type", "group", "partition", "topic")
_options = in_order(
    settings_options,
    assume_option,
    instant_options,
    rows_options,
    named_groups_options,
    input_options,
    max_undecoded_option,
    spark_options,
    output_options,
)


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option(
    "--by",
    type=click.Choice(BY),
    default=BY[0],
    show_default=True,
    help="Add records and bytes up by this.",
)
@click.option(
    "--commit-interval",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Say what one commit an offset and so many seconds would save.  [default: 60]",
)
@click.option(
    "--since",
    metavar="WORKSPACE",
    help="The workspace of an earlier dump of the same brokers: show how much was added since.",
)
@click.option(
    "--disk",
    type=Size(),
    metavar="SIZE",
    help="With --since: when the internal topics of a broker take so much, as 500GB or 2TiB.",
)
@fail_on_option()
@table_option("usage", beside=TABLES, needs={"usage_growth": Needed("since", "--since WORKSPACE")})
@_options
@pass_console
def usage(  # noqa: PLR0913 - one parameter an option
    console: Console,
    /,
    output_format: OutputFormat,
    *,
    by: str,
    commit_interval: float | None,
    since: str | None,
    disk: int | None,
    groups: tuple[str, ...],
    exclude_groups: tuple[str, ...],
    **options: Any,  # noqa: ANN401
) -> int:
    """Show what fills the internal topics.

    Every byte of their files: batch headers, records by partition, group and type, control records,
    and what is neither; which records are the last of their key and which are dead; whether the
    cleaner keeps up; who commits most; groups that look left behind; what a coordinator has to
    load; how it all grows. All of it is of the end of the dump. docs/usage.md explains all of it.
    """
    # Arrow is heavy: --help answers without it.
    from analytics.errors import CannotTellError  # noqa: PLC0415
    from analytics.questions.usage.question import NOT_THEN, USAGE, UsageSettings  # noqa: PLC0415
    from analytics.replay.dump.choices import END  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from reports.answers.usage import usage_text  # noqa: PLC0415

    if disk is not None and since is None:
        raise click.UsageError("--disk needs --since: one dump does not say how fast it grows")
    if options.get("as_of") not in {None, END} or options.get("ends"):
        raise CannotTellError(NOT_THEN)
    return ask_and_show(
        console,
        USAGE,
        UsageSettings(by, commit_interval, since, disk, groups, exclude_groups),
        lambda _, answer, wanted, metadata: PrintedAnswer(
            usage_text(
                answer.long_tables,
                answer.figures,
                wanted,
                metadata,
                by=by,
                room_bytes=disk,
            )
        ),
        output_format,
        **options,
    )
