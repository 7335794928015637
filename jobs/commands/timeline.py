"""The command `timeline`: everything that happened to a group, its losses first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import asking_options, fail_on_option, table_option
from jobs.cli.options.shared import end_offsets_option, inputs_argument, out_option
from jobs.cli.options.state import Instant

if TYPE_CHECKING:
    from analytics.replay.dump.choices import BeforeEnd
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope timeline examples/kafka-4.3.1-failover --group parcel-router
  groupscope timeline examples/kafka-4.3.1-failover --group 'billing-*' --from 2026-11-21T09:20:00Z
"""


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option(
    "--from", "time_from", type=Instant(), metavar="TIME", help="Only events at or after this time."
)
@click.option(
    "--to",
    "time_to",
    type=Instant(),
    metavar="TIME",
    help="Only events at or before this time, and verdicts of the history up to it.",
)
@end_offsets_option
@fail_on_option()
@table_option("events", beside=("verdicts",))
@asking_options
@pass_console
def timeline(
    console: Console,
    /,
    output_format: OutputFormat,
    *,
    time_from: int | BeforeEnd | None,
    time_to: int | BeforeEnd | None,
    end_offsets: str | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Show everything that happened to a group.

    First a verdict for everything that happened to an offset, the worst first: when, what it was
    and became, and its cost: how many records were read again, or skipped where the number is
    negative. Verdicts are of the whole history up to --to, whatever --from says. An offset to
    which nothing happened says since when that is known.

    Then every event in order, with the record that says so: generations and epochs, members,
    offsets, transactions, share partitions, elections, topics and settings.

    The exit code is 3 where a part of the history cannot be judged.
    """
    if not options["groups"]:
        raise click.UsageError("--group is required: name the groups whose timeline you want")
    # Arrow is heavy: --help answers without it.
    from analytics.questions.timeline.question import NOT_WHOLE, TIMELINE, TimelineSettings  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from reports.answers.timeline import timeline_text  # noqa: PLC0415

    return ask_and_show(
        console,
        TIMELINE,
        TimelineSettings(time_from, time_to, end_offsets),
        lambda _, answer, wanted, metadata: PrintedAnswer(
            timeline_text(
                answer.long_tables,
                wanted,
                metadata,
                note=answer.figures[NOT_WHOLE],
            )
        ),
        output_format,
        **options,
    )
