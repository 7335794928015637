"""The command `expiration`: which offsets expire when, what went, and what if."""

from __future__ import annotations

from typing import Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.asking import asking_options
from jobs.cli.options.fail_on import fail_on_option
from jobs.cli.options.retention_minutes import retention_minutes_option
from jobs.cli.options.rows import table_option
from jobs.cli.options.shared import end_offsets_option, inputs_argument, out_option
from schemas.expiration_rules import expiration_eras

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
    "era",
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
def expiration(
    console: Console,
    /,
    output_format: str,
    minutes: tuple[int, ...],
    era: str,
    end_offsets: str | None,
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
    from jobs.runs.expiration.run import Wanted, expiration_of  # noqa: PLC0415

    wanted = Wanted(output_format, minutes, None if era == AUTO else era, end_offsets)
    answer, code = expiration_of(console, wanted, **options)
    if answer:
        click.echo(answer)
    return code
