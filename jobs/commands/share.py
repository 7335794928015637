"""The command `share`: what share groups have left to deliver, and what holds them up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.options.answer import asking_options, fail_on_option, table_option
from jobs.cli.options.shared import end_offsets_option, inputs_argument, out_option
from jobs.cli.options.state import dialect_option, refuse_other_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.questions.question import Answer
    from jobs.workspaces.replayed import Replayed
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope share examples/kafka-4.3.1-failover --by group
  groupscope share examples/kafka-4.3.1-failover --group pickup-dispatch --wide
"""
BY = ("partition", "group", "topic")


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option(
    "--by",
    type=click.Choice(BY),
    default=BY[0],
    show_default=True,
    help="Add the backlog up by this.",
)
@click.option(
    "--history",
    is_flag=True,
    help="Show when share partitions stood still before, too.",
)
@click.option(
    "--against",
    metavar="FILE",
    help="Compare with what kafka-share-groups --describe printed into this file.",
)
@end_offsets_option
@fail_on_option()
@table_option(
    "backlog",
    beside=(
        *("stalls", "delivery_counts", "archived", "faults", "steps", "limits", "prunable"),
        *("share_partitions", "share_batches", "share_checkpoints", "chain", "share_readings"),
    ),
)
@dialect_option
@asking_options
@pass_console
def share(
    console: Console,
    /,
    output_format: OutputFormat,
    *,
    by: str,
    history: bool,
    against: str | None,
    end_offsets: str | None,
    dialect: str | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Show the backlog of share groups and what blocks it.

    For each partition Kafka's own lag (KIP-1226); the range of records that keeps the start offset
    where it is, since when, and how often it was delivered; records that are given up unless their
    next delivery is accepted, and those that were given up. docs/share.md explains it.
    """
    # Arrow is heavy: --help answers without it.
    from analytics.gaps.group_selection import select_groups  # noqa: PLC0415
    from analytics.questions.describe.description import NEEDS  # noqa: PLC0415
    from analytics.questions.share.question import SHARE, BacklogSettings  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from jobs.comparing import shown_against  # noqa: PLC0415
    from jobs.workspaces.dialects import DIALECT_OPTIONS, dialect_answer, dialect_state, is_asked  # noqa: PLC0415
    from reports.answers.share import share_text  # noqa: PLC0415

    if is_asked(dialect, options["inputs"], output_format):
        refuse_other_options(DIALECT_OPTIONS)
        chosen = {name: options[name] for name in (*DIALECT_OPTIONS, "out")}
        found = dialect_state(console, dialect=dialect, **chosen)
        text, code = dialect_answer(console, found, output_format)
        print_text(text)
        return code

    def show(
        state: Replayed, answer: Answer, chosen_format: OutputFormat, metadata: Mapping[str, Any]
    ) -> PrintedAnswer:
        if against is not None:
            of_groups = select_groups(state, "share", with_offsets=False)
            compared = replace(answer, groups=of_groups)
            return shown_against(console, against, end_offsets, state, compared, chosen_format)
        return PrintedAnswer(
            share_text(
                answer.long_tables,
                answer.figures,
                chosen_format,
                metadata,
                by=by,
                with_history=history,
            )
        )

    settings = BacklogSettings(by, end_offsets)
    shown_needs = NEEDS if against is not None else ()
    return ask_and_show(
        console, SHARE, settings, show, output_format, shown_needs=shown_needs, **options
    )
