"""Instants as manifests and answers have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from analytics.epoch_times import EPOCH, milliseconds_of

END: Final = "end"
"""Stands for the end of the dump, whenever that is."""


@dataclass(frozen=True)
class BeforeEnd:
    """An instant before the end of the dump; `analytics.replay.dump.times` resolves it.

    Attributes:
        milliseconds: How long before.
    """

    milliseconds: int


def iso_time(when: datetime) -> str:
    """Return the instant as it is printed everywhere: UTC, milliseconds, Z."""
    utc = when.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def moment(time_ms: int) -> datetime:
    """Return the instant of epoch milliseconds that was asked about: of the years 1 to 9999."""
    return EPOCH + timedelta(milliseconds=time_ms)


def instant_milliseconds(instant: datetime | str | int) -> int:
    """Return an instant as epoch milliseconds.

    Args:
        instant: A datetime or ISO 8601, of UTC where it has no zone; or epoch milliseconds.
    """
    if isinstance(instant, int):
        return instant
    when = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return milliseconds_of(when)


def as_of_metadata(time_ms: int | None, offsets: Mapping[tuple[str, int], int]) -> dict[str, Any]:
    """Return an instant as manifests and answers have it: `time` (ISO 8601 or null), `offsets`."""
    time = None if time_ms is None else iso_time(moment(time_ms))
    return {
        "time": time,
        "offsets": {f"{topic}-{number}": end for (topic, number), end in sorted(offsets.items())},
    }
