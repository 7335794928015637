"""Options that say which state is asked about: at which instant, by which rules, what is assumed.

TIME is an instant as people write it, or the end of the dump.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

import click
from click.core import ParameterSource

from analytics.epoch_times import milliseconds_of
from analytics.errors import SettingRefusedError
from analytics.replay.dump.choices import (
    CLEAN_ELECTIONS,
    COMPLETE_ARCHIVE,
    END,
    NO_TRANSACTIONS,
    ONE_REPLICA,
    UNCLEAN_ELECTIONS_OFF,
    BeforeEnd,
    checked_release,
    iso_time,
    moment,
)
from jobs.cli.console import Console
from jobs.cli.options.shared import in_order
from schemas import INTERNAL_TOPICS
from schemas.catalog import CHECKPOINT_DELTA, KIP_932_TEXT

# What a person vouches for where the dump cannot tell, which every answer says: `--assume`.
#
# With `--dialect` it is that records are read in another way, which no release of Kafka has.

_WORDS = {
    NO_TRANSACTIONS: "no commit in the archived rows was made in a transaction",
    CLEAN_ELECTIONS: "no election lost commits but those that the dump shows",
    COMPLETE_ARCHIVE: "the archived rows are all there were but for what compaction removed",
}
_BY_SETTINGS = {
    UNCLEAN_ELECTIONS_OFF: "unclean.leader.election.enable=false",
    ONE_REPLICA: "offsets.topic.replication.factor=1",
}


def _in_one_order(
    _ctx: click.Context, _parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(sorted(set(value)))


assume_option = click.option(
    "--assume",
    type=click.Choice(sorted(_WORDS)),
    multiple=True,
    callback=_in_one_order,
    help="Answer as if archived rows held no commit in a transaction, or were never incomplete, or "
    "as if no election lost commits but those that the dump shows; repeatable.",
)
"""`--assume` as `assume: tuple[str, ...]`, in one order."""

dialect_option = click.option(
    "--dialect",
    type=click.Choice([CHECKPOINT_DELTA, KIP_932_TEXT]),
    is_eager=True,  # other options mean something else with it
    help="Read share state as a design of Kafka had it, and no release; docs/dialects.md.",
)
"""`--dialect` as `dialect: str | None`."""
_OF_OUTPUT = {
    *("inputs", "out", "dialect", "output_format", "table", "wide", "top", "sort"),
    *("only_problems", "quiet", "verbose", "no_progress", "no_color"),
}


def assumptions_in_words(assumed: Iterable[str]) -> list[str]:
    """Return what is assumed in words."""
    return [
        f"by the settings given, {_WORDS[CLEAN_ELECTIONS]}: {_BY_SETTINGS[each]}"
        if each in _BY_SETTINGS
        else f"assumed: {_WORDS[each]} (--assume {each})"
        for each in assumed
    ]


def refuse_other_options(accepted: Collection[str]) -> None:
    """Refuse options of the running command that mean nothing in the dialect.

    Args:
        accepted: Names of parameters that mean something there, besides those of the output.

    Raises:
        click.UsageError: Another one was given.
    """
    context = click.get_current_context()
    known = {*accepted, *_OF_OUTPUT}
    for each in context.command.params:
        source = context.get_parameter_source(str(each.name))
        if source is ParameterSource.COMMANDLINE and each.name not in known:
            raise click.UsageError(f"{max(each.opts, key=len)} means nothing in this dialect")


_RELATIVE = re.compile(r"-(\d{1,6})([smhd])")
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MILLISECONDS = re.compile(r"-?\d{9,}")
"""Nine digits or more are epoch milliseconds; fewer would be a year or a compact date."""


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
    try:
        return checked_release(value)
    except SettingRefusedError as error:
        raise click.BadParameter(str(error), param=parameter) from error


class Instant(click.ParamType["int | BeforeEnd | None"]):
    """TIME: ISO 8601 with or without milliseconds and zone, epoch milliseconds, -24h or `end`.

    Converts to epoch milliseconds (int), to `BeforeEnd`, or to None for `end`. Without a zone it is
    UTC, and says so.
    """

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | BeforeEnd | None:
        """Return the instant; None for the end of the dump."""
        if isinstance(value, (int, BeforeEnd)):
            return value
        text = str(value).strip()
        if text.lower() == END:
            return None
        if _MILLISECONDS.fullmatch(text):
            return self._within_years(int(text), text, param, ctx)
        if relative := _RELATIVE.fullmatch(text):
            return BeforeEnd(int(relative[1]) * _UNITS[relative[2]])
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            self.fail(
                f"invalid time {text!r}: write 2026-11-21T08:15:00Z, epoch milliseconds, -24h "
                f"(before the end of the dump) or end",
                param,
                ctx,
            )
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
            if ctx is not None:
                ctx.ensure_object(Console).say(f"{text} has no zone: taken as {iso_time(when)}")
        return milliseconds_of(when)

    def _within_years(
        self, time_ms: int, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            moment(time_ms)
        except OverflowError:
            self.fail(f"invalid time {text!r}: it is outside the years 1 to 9999", param, ctx)
        return time_ms


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
