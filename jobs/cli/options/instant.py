"""TIME on the command line: an instant as people write it, or the end of the dump."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

from analytics.epoch_times import milliseconds_of
from analytics.replay.dump.written_instants import END, BeforeEnd, iso_time, moment
from jobs.cli.console import Console

_RELATIVE = re.compile(r"-(\d{1,6})([smhd])")
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MILLISECONDS = re.compile(r"-?\d{9,}")
"""Nine digits or more are epoch milliseconds; fewer would be a year or a compact date."""


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
        if MILLISECONDS.fullmatch(text):
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
