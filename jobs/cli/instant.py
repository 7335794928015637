"""TIME on the command line: an instant as people write it, or the end of the dump."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from jobs.cli.console import Console

END: Final = "end"
"""Stands for the end of the dump, whenever that is."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RELATIVE = re.compile(r"-(\d{1,6})([smhd])")
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MILLISECONDS = re.compile(r"-?\d{9,}")
"""Nine digits or more are epoch milliseconds; fewer would be a year or a compact date."""


@dataclass(frozen=True)
class BeforeEnd:
    """An instant before the end of the dump; `jobs.cli.dump_time` resolves it.

    Attributes:
        milliseconds: How long before.
    """

    milliseconds: int


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
                ctx.ensure_object(Console).say(f"{text} has no zone: taken as {shown(when)}")
        return (when - EPOCH) // timedelta(milliseconds=1)

    def _within_years(
        self, time_ms: int, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            moment(time_ms)
        except OverflowError:
            self.fail(f"invalid time {text!r}: it is outside the years 1 to 9999", param, ctx)
        return time_ms


def shown(when: datetime) -> str:
    """Return the instant as it is printed everywhere: UTC, milliseconds, Z."""
    utc = when.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def moment(time_ms: int) -> datetime:
    """Return the instant of epoch milliseconds."""
    return EPOCH + timedelta(milliseconds=time_ms)


def as_of_said(time_ms: int | None, offsets: Mapping[tuple[str, int], int]) -> dict[str, Any]:
    """Return an instant as manifests and answers have it: `time` (ISO 8601 or null), `offsets`."""
    time = None if time_ms is None else shown(moment(time_ms))
    return {
        "time": time,
        "offsets": {f"{topic}-{number}": end for (topic, number), end in sorted(offsets.items())},
    }
