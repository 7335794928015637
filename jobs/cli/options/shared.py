"""Options that several commands share, each declared once."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from analytics.locations import check_scheme, is_uri, local_path
from jobs.cli.completion import names_of
from jobs.cli.console import Console
from jobs.cli.page_width import page_width
from reports.layout.output_format import OutputFormat, Paper
from schemas import INTERNAL_TOPICS

MOST_PARTITIONS = 100_000
"""No internal topic has as many: what a range may name, so that a slip does not fill memory."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def in_order(*decorators: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Return one decorator that declares what the given ones declare, in reading order."""

    def decorate(function: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


# --- how much is said ------------------------------------------------------------------------


def _quiet(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value:
        ctx.ensure_object(Console).quiet = True


def _verbose(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value:
        ctx.ensure_object(Console).verbose = True


def _no_progress(
    ctx: click.Context,
    _parameter: click.Parameter,
    value: bool,  # noqa: FBT001
) -> None:
    if value:
        ctx.ensure_object(Console).progress = False


NO_COLOR = "NO_COLOR"
"""The environment variable by which people ask all programs for no colors."""


def _no_color(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value or os.environ.get(NO_COLOR):
        ctx.color = False


def _output_flag(name: str, callback: Callable[..., None], text: str) -> Callable[[Any], Any]:
    return click.option(
        name, is_flag=True, expose_value=False, is_eager=True, callback=callback, help=text
    )


output_options = in_order(
    _output_flag("--quiet", _quiet, "Print only errors on stderr."),
    _output_flag("--verbose", _verbose, "Print what was recognised and assumed, and Spark's log."),
    _output_flag("--no-progress", _no_progress, "Show no progress, even on a terminal."),
    _output_flag("--no-color", _no_color, "Use no color, even on a terminal."),
)
"""`--quiet`, `--verbose`, `--no-progress`, `--no-color`: they set up the run's `Console`."""


# --- what is read ----------------------------------------------------------------------------

_TABLES = "groupscope.tables"
_FROM_TABLE = "--from-table"


def _note_tables(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> None:
    for name in value:
        if not name.strip():
            raise click.BadParameter(
                "name a table, as in ops.offsets_raw", ctx=ctx, param=parameter
            )
    # As an INPUT it is written as the option is, so that a command that a message advises runs.
    ctx.meta[_TABLES] = tuple(f"{_FROM_TABLE}={name}" for name in value)


def _with_tables(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    inputs = (*value, *ctx.meta.get(_TABLES, ()))
    if not inputs and not ctx.resilient_parsing:
        raise click.MissingParameter(ctx=ctx, param=parameter)
    return inputs


inputs_argument = in_order(
    click.argument("inputs", metavar="INPUT...", nargs=-1, callback=_with_tables),
    click.option(
        _FROM_TABLE,
        metavar="CATALOG.SCHEMA.NAME",
        multiple=True,
        is_eager=True,
        expose_value=False,
        callback=_note_tables,
        help="Read archived rows from this table of Spark's catalogs too, or instead of INPUT; "
        "repeatable.",
    ),
)
"""`INPUT...` and `--from-table` as `inputs: tuple[str, ...]`."""

input_options = in_order(
    click.option(
        "--topic-partition",
        metavar="TOPIC-N",
        help="The partition of a segment that is not in a partition directory.",
    ),
    click.option(
        "--prefer-copy",
        metavar="NAME",
        help="Where copies diverged, follow this one instead of the line that survived.",
    ),
    click.option(
        "--strict-high-watermark",
        is_flag=True,
        help="Leave out records above the checkpointed high watermark.",
    ),
    click.option(
        "--value-encoding",
        type=click.Choice(["binary", "hex", "base64"]),
        help="How archived rows write keys and values; by default text is base64, bytes binary.",
    ),
)
"""How INPUTs are taken: `topic_partition`, `prefer_copy`, `strict_high_watermark`,
`value_encoding`."""


# --- which records are wanted ------------------------------------------------------------------


def _patterns(
    _ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    for text in value:
        if len(text) > 1 and text.startswith("/") and text.endswith("/"):
            try:
                re.compile(text[1:-1])
            except re.error as error:
                raise click.BadParameter(f"{text}: {error}", param=parameter) from error
    return value


def _named(name: str, target: str, column: str, text: str) -> Callable[[Any], Any]:
    return click.option(
        name,
        target,
        metavar=_METAVARS[column],
        multiple=True,
        callback=_patterns,
        shell_complete=names_of(column),
        help=text,
    )


_METAVARS = {"group_id": "GROUP", "topic": "TOPIC"}
"""What options are given, by the column that has such names."""


def _items(values: tuple[str, ...]) -> list[str]:
    """Return what was given one by one, or several at once with commas between."""
    return [item.strip() for value in values for item in value.split(",")]


def _topics(
    _ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    for topic in _items(value):
        if topic not in INTERNAL_TOPICS:
            raise click.BadParameter(
                f"{topic!r} is not an internal topic; use one of {', '.join(INTERNAL_TOPICS)}",
                param=parameter,
            )
    return tuple(dict.fromkeys(_items(value)))


def _partitions(
    _ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[int, ...]:
    chosen: set[int] = set()
    for item in _items(value):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", item, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < MOST_PARTITIONS:
            raise click.BadParameter(
                f"invalid partitions {item!r}: write numbers and ranges, as in 17 or 0-9,17",
                param=parameter,
            )
        chosen.update(range(first, last + 1))
    return tuple(sorted(chosen))


named_groups_options = in_order(
    _named(
        "--group", "groups", "group_id", "Only this group: a name, glob* or /regex/; repeatable."
    ),
    _named(
        "--exclude-group",
        "exclude_groups",
        "group_id",
        "Leave out this group: a name, glob* or /regex/; repeatable.",
    ),
)
"""`groups`, `exclude_groups`, each a tuple; empty is all."""

group_options = in_order(
    named_groups_options,
    _named(
        "--topic",
        "data_topics",
        "topic",
        "Only offsets of this topic: a name, glob* or /regex/; repeatable.",
    ),
)
"""`groups`, `exclude_groups`, `data_topics`, each a tuple; empty is all."""

selection_options = in_order(
    click.option(
        "--topics",
        metavar="TOPIC,...",
        multiple=True,
        callback=_topics,
        help="Read only these internal topics; repeatable.",
    ),
    click.option(
        "--partitions",
        metavar="N,N-N,...",
        multiple=True,
        callback=_partitions,
        help="Read only these partitions of the internal topics; repeatable.",
    ),
    group_options,
)
"""`topics`, `partitions`, `groups`, `exclude_groups`, `data_topics`, each a tuple; empty is all."""


# --- which groups are shown --------------------------------------------------------------------

GROUP_TYPES = ("classic", "simple", "consumer", "share", "streams")

end_offsets_option = click.option(
    "--end-offsets",
    metavar="FILE",
    help="Ends of logs, as CSV, JSON or Parquet: topic, partition, log_start_offset, "
    "log_end_offset and, of several samples, timestamp.",
)
"""`--end-offsets` as `end_offsets: str | None`."""


# --- where results go --------------------------------------------------------------------------

_SHARED_OUT = "groupscope.shared_out"


def _note_shared(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    ctx.meta[_SHARED_OUT] = value


def _shared_folder(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Create the folder as others may read it; without `--shared-out` a workspace is private."""
    if value is None or not ctx.meta.get(_SHARED_OUT) or is_uri(value):
        return value
    try:
        Path(local_path(value)).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{value}: {error.strerror}", param=parameter) from error
    return value


def out_options(text: str, *, required: bool = False) -> Callable[[Any], Any]:
    """Return `--out` as `out`, and `--shared-out`, which says who may read a new folder.

    Args:
        text: The help of `--out`.
        required: Whether the command needs a folder.
    """
    return in_order(
        click.option("--out", metavar="DIR", required=required, callback=_shared_folder, help=text),
        click.option(
            "--shared-out",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_note_shared,
            help="Let others read a new --out folder, as the umask has it; otherwise only you can.",
        ),
    )


out_option = out_options("Keep the workspace in this folder; by default a temporary one is used.")
"""`--out` as `out: str | None`, and `--shared-out`."""

resume_option = click.option(
    "--resume",
    metavar="WORKSPACE",
    help="An earlier run: of the same bytes of logs its decoded rows are kept; only the rest is "
    "decoded.",
)
"""`--resume` as `resume: str | None`."""

save_options = in_order(
    click.option(
        "--save-tables",
        metavar="CATALOG.SCHEMA",
        help="Save the tables to this schema of Spark's catalogs, too, beside those of other runs; "
        "the same run takes its own place.",
    ),
    click.option(
        "--save-format",
        type=click.Choice(["parquet", "delta", "iceberg"]),
        default="parquet",
        show_default=True,
        help="What tables that are not there yet are made as.",
    ),
    click.option(
        "--cluster",
        metavar="NAME",
        help="What saved tables and metrics call the cluster.  "
        "[default: its id in meta.properties]",
    ),
)
"""`save_tables: str | None`, `save_format: str` and `cluster: str | None`."""


def _note_output(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    if not value or (not is_uri(value) and Path(local_path(value)).is_dir()):
        raise click.BadParameter(f"{value or 'nothing'} is no file", ctx=ctx, param=parameter)
    check_scheme(value)
    ctx.ensure_object(Console).output = value


def _with_width(ctx: click.Context, _parameter: click.Parameter, value: str) -> OutputFormat:
    return OutputFormat(value, paper=Paper(page_width(ctx.ensure_object(Console).output)))


def format_options(*formats: str, text: str = "Format of the output.") -> Callable[[Any], Any]:
    """Return `--format` as `output_format`, and `--output`, which says where `print_text` prints.

    Args:
        formats: All, the first by default.
        text: The help of `--format`.
    """
    return in_order(
        click.option(
            "--format",
            "output_format",
            type=click.Choice(formats),
            default=formats[0],
            show_default=True,
            callback=_with_width,
            help=text,
        ),
        click.option(
            "--output",
            metavar="FILE",
            expose_value=False,
            # How wide text is depends on where it goes.
            is_eager=True,
            callback=_note_output,
            help="Write the answer into this file, whole, instead of to stdout.",
        ),
    )


summary_format_options = format_options("text", "json", text="Format of the summary.")
"""`--format` of what a command that writes tables prints, as `output_format`, and `--output`."""


@contextmanager
def workspace_folder(out: str | None, console: Console) -> Iterator[str]:
    """Hand over the folder to work in; without `out` a temporary one."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
        console.detail(f"working in {folder}, which is removed at the end")
        yield folder


# --- sizes as people write them: 500MB, 1.5TB, 2GiB --------------------------------------------

_UNITS = {
    **{name: 1000**power for power, name in enumerate(("", "k", "m", "g", "t"))},
    **{f"{name}i": 1024**power for power, name in enumerate(("", "k", "m", "g", "t")) if name},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?", re.IGNORECASE | re.ASCII)


class Size(click.ParamType[int]):
    """A number of bytes."""

    name = "size"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the bytes; thousands, or with an i 1024 of them, make the next unit."""
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value.strip())
        size = round(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
        if size <= 0:
            self.fail(f"{value!r} is no size: write 500GB or 2TiB", param, ctx)
        return size


disk_size_option = click.option(
    "--disk-size",
    metavar="SIZE",
    type=Size(),
    help="How large the disk of each broker is, as in 500GB or 2TiB: says when it is full.",
)


# --- where it runs ---------------------------------------------------------------------------


def _settings(
    _ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, str]:
    pairs = [text.partition("=") for text in value]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise click.BadParameter(
                "write KEY=VALUE, as in spark.driver.memory=8g", param=parameter
            )
    return {key: setting for key, _, setting in pairs}


spark_conf_option = click.option(
    "--conf",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_settings,
    help="A Spark setting; repeatable.",
)
"""`--conf` as `conf: dict[str, str]`."""

spark_options = in_order(
    click.option(
        "--master",
        metavar="URL",
        help="Spark master; that of spark-submit goes first.  [default: local[*]]",
    ),
    spark_conf_option,
)
"""`--master` as `master: str | None` and `--conf` as `conf: dict[str, str]`."""
