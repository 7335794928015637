"""What a person chooses of a replay: the instant, as it is written, and what they vouch for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from analytics.epoch_times import EPOCH, milliseconds_of
from analytics.errors import SettingRefusedError
from schemas import CONSUMER_OFFSETS
from schemas.names import did_you_mean
from schemas.releases import OLDEST, release_key

if TYPE_CHECKING:
    from schemas.manifest import AsOfEntry, Manifest

# Instants as manifests and answers have them.

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


def as_of_metadata(time_ms: int | None, offsets: Mapping[tuple[str, int], int]) -> AsOfEntry:
    """Return an instant as manifests and answers have it: `time` (ISO 8601 or null), `offsets`."""
    time = None if time_ms is None else iso_time(moment(time_ms))
    return {
        "time": time,
        "offsets": {f"{topic}-{number}": end for (topic, number), end in sorted(offsets.items())},
    }


# What a person vouches for where the dump cannot tell; every answer says so.

NO_TRANSACTIONS, COMPLETE_ARCHIVE = "no-transactions", "complete-archive"
CLEAN_ELECTIONS: Final = "clean-elections"
UNCLEAN_ELECTIONS_OFF: Final = "unclean-elections-off"
"""Settings that a person gives say `unclean.leader.election.enable=false`."""
ONE_REPLICA: Final = "one-replica"
"""Settings that a person gives say `offsets.topic.replication.factor=1`."""
ASSUMPTIONS: Final = (
    *(NO_TRANSACTIONS, COMPLETE_ARCHIVE, CLEAN_ELECTIONS, UNCLEAN_ELECTIONS_OFF, ONE_REPLICA),
)


def check_assumptions(assume: Iterable[str]) -> None:
    """Check that all that is assumed is something that can be.

    Raises:
        SettingRefusedError: A word is none of `ASSUMPTIONS`.
    """
    for each in assume:
        if each not in ASSUMPTIONS:
            hint = did_you_mean(each, ASSUMPTIONS, "there are")
            raise SettingRefusedError(f"nothing is called {each!r} that can be assumed: {hint}")


def archived(manifest: Manifest, topic: str) -> frozenset[int]:
    """Return the partitions of an internal topic whose records are archived rows."""
    return frozenset(
        each["partition"]
        for each in manifest["partitions"]
        if each["topic"] == topic and each.get("copy", "") is None
    )


def assumed_of(manifest: Manifest, assume: Iterable[str]) -> list[str]:
    """Return what is assumed of a dump: only of what it cannot tell itself."""
    rows = manifest["partitions"]
    open_questions: set[str] = set()
    if any(each.get("copy", "") is None for each in rows):
        open_questions |= {NO_TRANSACTIONS, COMPLETE_ARCHIVE}
    if any(each.get("unjudged_elections") for each in rows):
        open_questions |= {CLEAN_ELECTIONS, *_settings_believed(manifest)}
    return sorted(open_questions & set(assume))


def are_elections_clean(assumed: Collection[str]) -> bool:
    """Return whether no election lost commits but those that the dump shows, as is assumed."""
    return not {CLEAN_ELECTIONS, UNCLEAN_ELECTIONS_OFF, ONE_REPLICA}.isdisjoint(assumed)


def _settings_believed(manifest: Manifest) -> set[str]:
    """Return which settings are believed of elections that nothing in a dump tells of.

    None are where the dump shows an unclean election: the settings were others then.
    """
    untold = [
        (row["topic"], each)
        for row in manifest["partitions"]
        for each in row.get("unjudged_elections") or ()
    ]
    lost = manifest.get("divergences") or ()
    # Workspaces of older releases do not say whether one is known to have been unclean.
    if any(each.get("is_unclean", True) for _, each in untold) or any(
        each.get("unclean") for each in lost
    ):
        return set()
    is_of_offsets = all(topic == CONSUMER_OFFSETS for topic, _ in untold)
    return {UNCLEAN_ELECTIONS_OFF, *([ONE_REPLICA] if is_of_offsets else [])}


def assumed_in(manifest: Manifest) -> list[str]:
    """Return what was assumed when a workspace was replayed."""
    replay = manifest.get("replay")
    return [] if replay is None else list(replay.get("assumed", ()))


# The release whose rules a person names.

_PARTS_OF_A_LINE: Final = 2


def checked_release(release: str) -> str:
    """Return a release of Kafka ("3.9", "4.3.1"), whose rules are known.

    Raises:
        SettingRefusedError: It is none, or older than any whose rules are known.
    """
    parts = release.split(".")
    if len(parts) < _PARTS_OF_A_LINE or not all(
        part.isascii() and part.isdecimal() for part in parts
    ):
        raise SettingRefusedError(f"invalid release {release!r}: write it as 3.9 or 4.3.1")
    if release_key(release) < release_key(OLDEST):
        raise SettingRefusedError(
            f"release {release} is older than any whose rules are known; the oldest is {OLDEST}"
        )
    return release
