"""The command `audit`: every question at once, and what is worth a look."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import (
    asking_options,
    fail_on_option,
    retention_minutes_option,
    table_option,
)
from jobs.cli.options.shared import (
    disk_size_option,
    end_offsets_option,
    inputs_argument,
    out_options,
    resume_option,
    save_options,
)

EPILOG = """
\b
Examples:
  groupscope audit examples/kafka-4.3.1-failover --out audited
  groupscope audit examples/kafka-4.3.1-failover --out audited --fail-on warning --group 'parcel-*'
"""


def _print_config(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value and not ctx.resilient_parsing:
        from jobs.cli.settings_files import starting_config  # noqa: PLC0415
        from schemas.evaluation_rules import QUESTIONS, thresholds  # noqa: PLC0415
        from schemas.finding_rules import finding_rules  # noqa: PLC0415

        questions = {name: thresholds(name) for name in QUESTIONS}
        click.echo(starting_config(finding_rules(), questions), nl=False)
        ctx.exit()


@click.command(epilog=EPILOG)
@inputs_argument
@out_options("Keep the workspace in this folder.", required=True)
@fail_on_option("critical")
@click.option(
    "--since",
    metavar="WORKSPACE",
    help="An earlier audit: say which findings are new, still there, or gone.",
)
@resume_option
@click.option(
    "--metrics",
    metavar="FILE",
    help="Write OpenMetrics text into this file too, for a textfile collector.",
)
@click.option(
    "--on-findings",
    metavar="COMMAND",
    help="Run this command where anything was found, with summary.json on its standard input.",
)
@click.option(
    "--redact",
    metavar="KEYFILE",
    help="Put pseudonyms in place of all names: the same key gives the same. No decoded records "
    "are kept.",
)
@click.option(
    "--expectations",
    metavar="DIR",
    help="Hold tables against suites of your own, too: JSON of great-expectations, one a table.",
)
@click.option(
    "--data-docs",
    metavar="DIR",
    help="Write what came of expectations into this folder, as Data Docs of great-expectations.",
)
@click.option(
    "--print-config",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_config,
    help="Print a file for --config with all rules and thresholds, and exit.",
)
@disk_size_option
@save_options
@retention_minutes_option
@end_offsets_option
@table_option("findings", beside=("suppressions",))
@asking_options
@pass_console
def audit(console: Console, /, output_format: str, **options: Any) -> int:  # noqa: ANN401
    """Ask every question of a dump and show what is worth a look.

    Expiration, removals, what happened to offsets, lag, assignment, rebalances, share groups and
    the internal topics themselves, each judged by rules: what was found, since when, what to do,
    and the records that show it. DIR/summary.json has the counts, DIR/findings.jsonl each finding.
    docs/audit.md lists the rules.
    """
    # Spark and Arrow are heavy: --help answers without them.
    from jobs.audit.run import AuditOptions, audit_of  # noqa: PLC0415

    audit_options = AuditOptions(
        **{each.name: options.pop(each.name) for each in fields(AuditOptions)}
    )
    return audit_of(console, audit_options, output_format, **options)
