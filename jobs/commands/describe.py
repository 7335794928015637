"""The command `describe`: groups as Kafka's own tools describe them, at any instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import asking_options, table_option
from jobs.cli.options.shared import GROUP_TYPES, end_offsets_option, inputs_argument, out_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.questions.question import Answer
    from jobs.workspaces.replayed import Replayed
    from reports.layout.output_format import OutputFormat

OFFSETS, MEMBERS = "offsets", "members"
VIEWS = (OFFSETS, MEMBERS, "state")

EPILOG = """
\b
Examples:
  groupscope describe examples/kafka-4.3.1-failover --group 'parcel-*'
  groupscope describe examples/kafka-4.3.1-failover --members --verbose
"""


def _view(chosen: dict[str, bool]) -> str | None:
    named = [name for name in VIEWS if chosen[name]]
    if len(named) > 1:
        raise click.UsageError(f"--{named[0]} and --{named[1]} exclude each other")
    return named[0] if named else None


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option("--offsets", is_flag=True, help="Committed offsets and lag.  [default]")
@click.option("--members", is_flag=True, help="Members and their assignments.")
@click.option("--state", is_flag=True, help="Coordinator, state and epochs of each group.")
@click.option(
    "--type",
    "group_type",
    type=click.Choice(GROUP_TYPES, case_sensitive=False),
    help="Only groups of this type; classic includes simple groups.",
)
@click.option(
    "--against",
    metavar="FILE",
    help="Compare with a saved output of Kafka's tool; exit code 1 if rows differ.",
)
@click.option(
    "--epoch",
    type=click.IntRange(min=0),
    metavar="N",
    help="Members and assignments as of this generation or group epoch.",
)
@end_offsets_option
@table_option("consumer-groups", "share-groups", "streams-groups")
@asking_options
@pass_console
def describe(
    console: Console,
    /,
    output_format: OutputFormat,
    group_type: str | None,
    against: str | None,
    end_offsets: str | None,
    epoch: int | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Describe groups as Kafka's own tools do.

    Prints the columns of kafka-consumer-groups, kafka-share-groups and kafka-streams-groups
    --describe; --verbose adds those that it adds there. The log end and the lag are shown where
    they are known for that instant. What the dump cannot tell is said on stderr, with exit code
    3.
    """
    # Arrow is heavy: --help answers without it.
    from analytics.questions.describe.question import DESCRIBE, DescribeSettings  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from jobs.comparing import shown_comparison  # noqa: PLC0415
    from reports.describe.answer import describe_text  # noqa: PLC0415
    from reports.describe.groups import Source  # noqa: PLC0415

    chosen = _view({name: options.pop(name) for name in VIEWS})
    if epoch is not None and (chosen == OFFSETS or against or not options["groups"]):
        raise click.UsageError("--epoch needs --group, and works with --members or --state only")
    what = chosen or (OFFSETS if epoch is None else MEMBERS)

    def show(
        state: Replayed, answer: Answer, chosen_format: OutputFormat, metadata: Mapping[str, Any]
    ) -> PrintedAnswer:
        source = Source(**answer.figures)
        if against is not None:
            return shown_comparison(console, against, source, state, answer, chosen_format)
        is_verbose = console.verbose or epoch is not None
        return PrintedAnswer(
            describe_text(source, what, chosen_format, metadata, verbose=is_verbose)
        )

    settings = DescribeSettings(what, group_type, end_offsets, epoch, against is not None)
    return ask_and_show(console, DESCRIBE, settings, show, output_format, **options)
