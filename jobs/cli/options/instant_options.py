"""Options that say which instant is asked about, and by the rules of which release."""

from __future__ import annotations

import click
from click.core import ParameterSource

from analytics.replay.dump.written_instants import END, BeforeEnd
from jobs.cli.options.instant import Instant
from jobs.cli.options.shared import in_order
from schemas import INTERNAL_TOPICS
from schemas.releases import OLDEST, release_key

_PARTS_OF_A_LINE = 2


def asked_instant(
    ctx: click.Context, parameter: click.Parameter, value: int | BeforeEnd | None
) -> int | BeforeEnd | str | None:
    """Return the instant, `end` where it was asked for by name, None where nothing was said."""
    if value is not None or parameter.name is None:
        return value
    is_said = ctx.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT
    return END if is_said else None


def _ends(
    _ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[tuple[str, int], int]:
    ends: dict[tuple[str, int], int] = {}
    for text in value:
        topic, _, place = text.strip().partition(":")
        partition, _, offset = place.partition(":")
        if not (topic and partition.isdecimal() and offset.isdecimal()):
            raise click.BadParameter(
                f"invalid offset {text!r}: write TOPIC:PARTITION:OFFSET, as in "
                "__consumer_offsets:17:4711",
                param=parameter,
            )
        if topic not in INTERNAL_TOPICS:
            raise click.BadParameter(
                f"{topic!r} is not an internal topic; use one of {', '.join(INTERNAL_TOPICS)}",
                param=parameter,
            )
        ends[topic, int(partition)] = int(offset)
    return ends


def _release(_ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    parts = value.split(".")
    if len(parts) < _PARTS_OF_A_LINE or not all(_is_number(part) for part in parts):
        raise click.BadParameter(
            f"invalid release {value!r}: write it as 3.9 or 4.3.1", param=parameter
        )
    if release_key(value) < release_key(OLDEST):
        raise click.BadParameter(
            f"release {value} is older than any whose rules are known; the oldest is {OLDEST}",
            param=parameter,
        )
    return value


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdecimal()


instant_options = in_order(
    click.option(
        "--as-of",
        type=Instant(),
        metavar="TIME",
        callback=asked_instant,
        help="Use only records appended at or before this time; -24h is before the end of the "
        "dump.  [default: end]",
    ),
    click.option(
        "--as-of-offset",
        "ends",
        metavar="TOPIC:PARTITION:OFFSET",
        multiple=True,
        callback=_ends,
        help="Use only records below this offset of a partition; repeatable.",
    ),
    click.option(
        "--kafka-version",
        metavar="X.Y[.Z]",
        callback=_release,
        help="The Kafka release whose rules apply; with Z where a patch release changed them.  "
        "[default: inferred, and stated]",
    ),
)
"""`as_of: int | "end" | None`, `ends: dict[tuple[str, int], int]`, `kafka_version: str | None`."""
