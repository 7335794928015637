"""The command `region`: checkpoints kept outside of Kafka, against what groups committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.options.answer import Needed, asking_options, table_option
from jobs.cli.options.shared import end_offsets_option, out_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.seeds.region.contributions import Contribution
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope region examples/region-checkpoints.jsonl
  groupscope region examples/region-checkpoints.jsonl --dump examples/kafka-4.3.1-failover
"""
START_POSITIONS = ("beginning", "end", "committed")


@click.command(epilog=EPILOG)
@click.argument("checkpoints", metavar="CHECKPOINTS...", nargs=-1, required=True)
@click.option(
    "--dump",
    "inputs",
    metavar="INPUT",
    multiple=True,
    help="What brokers wrote: a dump or a workspace; repeatable.",
)
@out_option
@click.option(
    "--checkpoint-group",
    metavar="GROUP",
    help="The group of checkpoints that name none: Spark's, Hudi's, a region's merge.",
)
@click.option(
    "--initial-offsets",
    metavar="FILE",
    help="Initial offsets of partitions, as CSV, JSON or Parquet: topic, partition, offset.",
)
@click.option(
    "--start-position",
    type=click.Choice(START_POSITIONS),
    help="Where reading starts in a partition that has neither.",
)
@end_offsets_option
@table_option(
    "region_checkpoints",
    beside=(
        "region_findings",
        "region_seek_plan",
        "region_drains",
        "region_operators",
        "region_checkpoint_offsets",
    ),
    needs={
        name: Needed("inputs", "--dump INPUT") for name in ("region_drains", "region_seek_plan")
    },
)
@asking_options
@pass_console
def region(  # noqa: PLR0913 - one parameter an option
    console: Console,
    /,
    output_format: OutputFormat,
    *,
    checkpoints: tuple[str, ...],
    checkpoint_group: str | None,
    initial_offsets: str | None,
    start_position: str | None,
    end_offsets: str | None,
    out: str | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Hold checkpoints kept outside of Kafka against committed offsets.

    CHECKPOINTS are files or folders: contributions of the operators of a consistent region or their
    merge, the checkpoint folder of a Spark query, Flink checkpoints exported as JSON, Hudi and
    Iceberg tables. Which are complete; with --dump whether their offsets were committed at one
    instant, and where members would read on if the latest were restored now. docs/region.md
    explains it.
    """
    of_dump = {
        "--out": out,
        "--initial-offsets": initial_offsets,
        "--start-position": start_position,
        "--end-offsets": end_offsets,
    }
    needing = [name for name, value in of_dump.items() if value is not None]
    if needing and not options["inputs"]:
        raise click.UsageError(f"{needing[0]} needs --dump INPUT")
    # Arrow is heavy: --help answers without it.
    from analytics.seeds.region.contributions import groups_of  # noqa: PLC0415
    from analytics.seeds.region.document_fields import read_initial_offsets  # noqa: PLC0415
    from analytics.seeds.region.question import REGION, RegionSettings  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from reports.answers.region import region_text  # noqa: PLC0415

    made = _contributions(console, checkpoints, checkpoint_group, options)
    if not options["inputs"]:
        return _show_alone(console, checkpoints, made, output_format, options)
    groups = groups_of(made)
    _check_names_groups(made, groups)
    if out is None:
        # A workspace that stays holds all groups; others may be asked for later.
        options |= {"groups": tuple(groups), "exclude_groups": ()}
    settings = RegionSettings(
        tuple(made), read_initial_offsets(initial_offsets), start_position, end_offsets
    )
    about = {"checkpoints": list(checkpoints)}
    return ask_and_show(
        console,
        REGION,
        settings,
        lambda _, answer, wanted, metadata: PrintedAnswer(
            region_text(answer.tables, wanted, metadata, about)
        ),
        output_format,
        out=out,
        **options,
    )


def _contributions(
    console: Console, paths: tuple[str, ...], group: str | None, options: Mapping[str, Any]
) -> list[Contribution]:
    """Return what the files contribute to checkpoints of the groups and topics asked for."""
    from analytics.decode.selection import Selection  # noqa: PLC0415
    from analytics.errors import InputNotRecognizedError  # noqa: PLC0415
    from analytics.seeds.region.contributions import selected  # noqa: PLC0415
    from analytics.seeds.region.recognized import read_checkpoints  # noqa: PLC0415

    remarks: list[str] = []
    read = read_checkpoints(paths, group, remarks)
    for each in remarks:
        console.warn(each)
    made = selected(
        read, Selection(options["groups"], options["exclude_groups"], options["data_topics"])
    )
    if not made:
        raise InputNotRecognizedError(
            f"{', '.join(paths)}: no checkpoint of the groups asked for has offsets of Kafka in it"
        )
    return made


def _check_names_groups(contributions: Sequence[Contribution], groups: Sequence[str]) -> None:
    from analytics.errors import InputNotRecognizedError  # noqa: PLC0415
    from analytics.seeds.region.contributions import places_without_group  # noqa: PLC0415

    if not groups:
        raise InputNotRecognizedError(
            f"{', '.join(places_without_group(contributions))}: names no group: give "
            "--checkpoint-group GROUP, whose commits --dump is asked for"
        )


def _show_alone(
    console: Console,
    paths: tuple[str, ...],
    contributions: Sequence[Contribution],
    output_format: OutputFormat,
    options: Mapping[str, Any],
) -> int:
    """Show what checkpoints say by themselves: there is no state to ask."""
    from analytics.gaps.gap import gap_documents  # noqa: PLC0415
    from analytics.seeds.region.question import checkpoints_alone  # noqa: PLC0415
    from jobs.asking import report_answer  # noqa: PLC0415
    from jobs.cli.exit_codes import CANNOT_TELL, DONE  # noqa: PLC0415
    from jobs.cli.settings_files import read_settings  # noqa: PLC0415
    from reports.answers.region import region_text  # noqa: PLC0415
    from schemas.evaluation_rules import region_rules  # noqa: PLC0415

    settings = read_settings(options["broker_configs"], options["config"])
    answer = checkpoints_alone(contributions, region_rules(settings.from_file.thresholds("region")))
    console.say("without --dump drains, members and the seek plan are not told")
    report_answer(console, answer)
    metadata = {
        "as_of": None,
        "cannot_tell": list(answer.cannot_tell),
        "gaps": gap_documents(answer.gaps),
        **answer.summary,
    }
    print_text(region_text(answer.tables, output_format, metadata, {"input": list(paths)}))
    return CANNOT_TELL if answer.doubts else DONE
