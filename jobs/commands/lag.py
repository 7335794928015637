"""The command `lag`: how far behind groups are, what they have lost, whether they move."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import Needed, asking_options, fail_on_option, table_option
from jobs.cli.options.shared import end_offsets_option, inputs_argument, out_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.questions.question import Answer
    from jobs.workspaces.replayed import Replayed
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope lag examples/kafka-4.3.1-failover --by group
  groupscope lag examples/kafka-4.3.1-failover --group 'parcel-*' --history
"""
BY = ("partition", "group", "topic", "member")


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option(
    "--by",
    type=click.Choice(BY),
    default=BY[0],
    show_default=True,
    help="Add lag up by this; --by topic also names readers, and topics that nobody reads.",
)
@click.option(
    "--history",
    is_flag=True,
    help="Show when each status changed, steps back and jumps forward, too.",
)
@click.option(
    "--min-lag", type=int, metavar="N", help="Only partitions that are at least so far behind."
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    metavar="STATUS",
    help="Only partitions with this status or verdict; repeatable.",
)
@click.option(
    "--against",
    metavar="FILE",
    help="Compare with a saved output of Kafka's tool; exit code 1 if rows differ.",
)
@click.option(
    "--since",
    metavar="WORKSPACE",
    help="The workspace of an earlier dump of the same brokers: show how lags grew since.",
)
@end_offsets_option
@fail_on_option()
@table_option(
    "lag",
    beside=("status_history", "offset_moves", "topic_readers", "group_capacity", "lag_growth"),
    needs={
        "status_history": Needed("history", "--history"),
        "offset_moves": Needed("history", "--history"),
        "topic_readers": Needed("by", "--by topic", "topic"),
        "group_capacity": Needed("by", "--by group", "group"),
        "lag_growth": Needed("since", "--since WORKSPACE"),
    },
)
@asking_options
@pass_console
def lag(  # noqa: PLR0913 - one parameter an option
    console: Console,
    /,
    output_format: OutputFormat,
    *,
    by: str,
    history: bool,
    min_lag: int | None,
    statuses: tuple[str, ...],
    against: str | None,
    since: str | None,
    end_offsets: str | None,
    out: str | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Show how far behind groups are.

    For each partition Kafka's own lag, and what it hides: records that were deleted unread, offsets
    beyond the end or of another topic, partitions that nobody owns. Burrow's status by Burrow's
    rules, and a verdict where it is blind. docs/lag.md explains both.
    """
    # Arrow is heavy: --help answers without it.
    from analytics.gaps.group_selection import select_groups  # noqa: PLC0415
    from analytics.questions.lag.question import GROUP, LAG, LagSettings  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from jobs.comparing import shown_against  # noqa: PLC0415
    from jobs.workspaces.compared_states import earlier_state  # noqa: PLC0415
    from reports.answers.lag import lag_text  # noqa: PLC0415

    def show(
        state: Replayed, answer: Answer, chosen_format: OutputFormat, metadata: Mapping[str, Any]
    ) -> PrintedAnswer:
        if against is not None:
            compared = replace(answer, groups=select_groups(state))
            return shown_against(
                console, against, end_offsets, state, compared, chosen_format, answer.tables["lag"]
            )
        tables = answer.long_tables
        return PrintedAnswer(
            lag_text(tables, answer.figures, chosen_format, metadata, by=by, with_history=history)
        )

    with earlier_state(console, since, LAG.needs, options) as earlier:
        settings = LagSettings(
            by, min_lag, statuses, end_offsets, earlier, out is not None or by == GROUP
        )
        return ask_and_show(console, LAG, settings, show, output_format, out=out, **options)
