"""What has to be said of groups and share partitions that lie where no client looks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from analytics.replay.dump.written_instants import iso_time
from analytics.replay.log.topic_homes import NOT_SEEN, TopicHomes
from reports.quantities import count, ranges
from schemas import SHARE_GROUP_STATE

_GROUP: Final = ("group", "groups")
_SHARE_PARTITION: Final = ("share partition", "share partitions")


def sentences_of_homes(homes: Mapping[str, TopicHomes]) -> Iterator[str]:
    """Say of topics what lies elsewhere, and since when, or that it cannot be told.

    Args:
        homes: By internal topic.
    """
    for topic, each in homes.items():
        what = _SHARE_PARTITION if topic == SHARE_GROUP_STATE else _GROUP
        if each.disputed:
            yield (
                f"cannot tell where clients look for {count(len(each.disputed), *what)}: no number "
                f"of partitions of {topic} explains where all keys lie; the records of one "
                f"partition are shown for each"
            )
        if each.perhaps is not None:
            yield (
                f"cannot tell whether brokers went by {each.partitions} or {each.perhaps} "
                f"partitions of {topic} then: of what lies elsewhere by the other number nothing "
                f"is certain"
            )
        elif each.misplaced and not each.disputed:
            yield _elsewhere(topic, each, what)


def _elsewhere(topic: str, homes: TopicHomes, what: tuple[str, str]) -> str:
    keys = sum(homes.misplaced.values())
    places = f"{topic} {ranges(homes.misplaced)}"
    since = ""
    if homes.before and homes.since is not None and homes.since != NOT_SEEN:
        since = f" since {iso_time(homes.since)}, when {homes.partitions} partitions began to count"
    only = ""
    if homes.unreachable:
        only = f"; {count(homes.unreachable, *what)} of them in no other partition"
    return (
        f"records of {count(keys, *what)} in {places} lie where no client is sent"
        f"{since}{only}: they are left out, and timeline tells what was lost"
    )
