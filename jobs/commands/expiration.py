"""The command `expiration`: which offsets expire when, what went, and what if."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import (
    NEVER,
    asking_options,
    fail_on_option,
    retention_minutes_option,
    table_option,
)
from jobs.cli.options.shared import end_offsets_option, inputs_argument, out_option
from schemas.expiration_rules import expiration_eras

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyarrow import Table

    from analytics.questions.describe.description import Description
    from analytics.questions.question import Answer
    from analytics.tables.parted_table import PartedTable
    from jobs.asking import PrintedAnswer
    from jobs.workspaces.replayed import Replayed
    from reports.layout.output_format import OutputFormat

AUTO = "auto"
EPILOG = """
\b
Examples:
  groupscope expiration examples/kafka-4.3.1-failover --retention-minutes 1,10080
  groupscope expiration examples/kafka-4.3.1-failover --group 'parcel-*' --rules kip-211
"""


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@retention_minutes_option
@click.option(
    "--rules",
    type=click.Choice([AUTO, *reversed(tuple(expiration_eras()))]),
    default=AUTO,
    show_default=True,
    help="By which rules offsets expire; kip-211 is the text, which no release goes by.",
)
@end_offsets_option
@fail_on_option()
@table_option("offsets", beside=("groups", "removals", "what_if", "endings", "requests"))
@asking_options
@pass_console
def expiration(  # noqa: PLR0913 - one parameter an option
    console: Console,
    /,
    output_format: OutputFormat,
    *,
    retention_minutes: tuple[int, ...],
    rules: str,
    end_offsets: str | None,
    kafka_version: str | None,
    out: str | None,
    fail_on: str,
    **options: Any,  # noqa: ANN401
) -> int:
    """Show which offsets expire when, and under which rule.

    First each group, then each offset with the columns of kafka-consumer-groups and RULE,
    EXPIRES-AT, STATUS; then what was removed, why, and whether rightly; then what other
    retentions would remove now, or would have removed in the time that the log shows. `--table
    endings` has groups whose offsets have all expired, `requests` what a commit of each version of
    the request would have been given (KIP-211).
    """
    # Spark and Arrow are heavy: --help answers without them.
    from analytics.questions.describe.description import NEEDS  # noqa: PLC0415
    from analytics.questions.expiration.question import EXPIRATION, ExpirationSettings  # noqa: PLC0415
    from jobs.asking import ask_and_show  # noqa: PLC0415
    from reports.answers.expiration import most_offsets, shows_requests  # noqa: PLC0415

    # What is not shown, kept or held against rules need not be held.
    is_all_wanted = out is not None or fail_on != NEVER
    asked = ExpirationSettings(
        retention_minutes,
        None if rules == AUTO else rules,
        kafka_version,
        end_offsets,
        with_requests=out is not None or shows_requests(output_format),
        most=None if is_all_wanted else most_offsets(output_format),
    )
    return ask_and_show(
        console,
        EXPIRATION,
        asked,
        partial(_text, console, end_offsets),
        output_format,
        out=out,
        fail_on=fail_on,
        kafka_version=kafka_version,
        shown_needs=NEEDS,
        **options,
    )


def _text(
    console: Console,
    end_offsets: str | None,
    state: Replayed,
    answer: Answer,
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
) -> PrintedAnswer:
    """Return the answer beside what kafka-consumer-groups says of the same offsets."""
    from analytics.questions.describe.description import described_groups, offsets_of_all  # noqa: PLC0415
    from jobs.asking import PrintedAnswer  # noqa: PLC0415
    from reports.answers.expiration import Described, expiration_text  # noqa: PLC0415
    from reports.describe.groups import only_groups  # noqa: PLC0415

    assert answer.groups is not None
    groups = answer.groups.rows
    make = partial(described_offsets, metadata["kafka_version"])

    def of_groups(rows: Table | None) -> Table:
        few, is_few = (groups, False) if rows is None else (only_groups(groups, rows), True)
        described = described_groups(state, few, end_offsets, is_few=is_few)
        for each in described.warnings:
            console.warn(each)
        return make(described.description)

    def of_all() -> PartedTable:
        described = offsets_of_all(state, make, end_offsets)
        for each in described.warnings:
            console.warn(each)
        return described.rows

    both = Described(of_groups, of_all)
    text = expiration_text(answer.long_tables, answer.figures, both, output_format, metadata)
    return PrintedAnswer(text, has_statements=not output_format.is_for_programs)


def described_offsets(release: str, description: Description) -> Table:
    """Return rows of offsets as kafka-consumer-groups of a release describes them."""
    from reports.describe.groups import Source, offset_rows  # noqa: PLC0415

    return offset_rows(Source(**vars(description)), release)
