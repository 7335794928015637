"""In which partitions of an internal topic its keys lie, and where clients look for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from analytics.engine.cut_tables import IN_BUCKETS, Cut, tables_of
from analytics.replay.dump.choices import iso_time, moment
from analytics.replay.dump.followed_lines import parsed_time
from analytics.replay.log.ends_at import leading
from analytics.replay.log.log_times import END
from analytics.replay.log.topic_homes import (
    MOST_PARTITIONS,
    NOT_SEEN,
    PLACES,
    UNDISPUTED,
    Era,
    TopicHomes,
    disputed_keys,
    eras_of,
    homes_at,
    numbers_that_fit,
    share_key,
    with_misplaced,
)
from analytics.replay.metadata_log import metadata_log
from analytics.replay.topics import partition_eras
from analytics.tables.record_keys import GROUPS, key_columns
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from analytics.replay.log.log_times import AsOf
    from analytics.tables.record_reader import RecordReader
    from schemas.manifest import HomesEntry, Manifest

_VALUES: Final = ("offset_commit", "share_snapshot", "share_update")
"""Records that clients cause, which a coordinator does not write of itself."""
_FEW: Final = 100
_LOT: Final = 50_000
"""So many keys are looked at together."""


class InternalTopics(NamedTuple):
    """What all records of a dump show of the topics of coordinators.

    Attributes:
        homes: Where keys are looked for, of topics of which not all keys are at home for certain.
        partition_counts: How many partitions a topic has, where the metadata log says it or the
            places of its keys allow one number alone.
    """

    homes: dict[str, TopicHomes]
    partition_counts: dict[str, int]


def internal_topics(reader: RecordReader, manifest: Manifest, instant: AsOf) -> InternalTopics:
    """Return what the records of all times show of internal topics at an instant.

    Args:
        reader: Of all records, whatever is asked for: a filter changes no answer.
        manifest: Of the decoded workspace.
        instant: The instant.
    """
    found = InternalTopics({}, {})
    log = None
    for topic in IN_BUCKETS:
        log = log or metadata_log(Cut(reader, END).whole())
        named, least = partition_eras(log, topic), _least(manifest, topic)
        fitting = _numbers_that_fit(reader, topic, named, least)
        if len(fitting) == 1:
            found.partition_counts[topic] = int(fitting[0])
        if len(fitting):
            continue
        places = key_places(reader, topic)
        eras = eras_of(places, named, least)
        if not eras:
            continue
        disputed = UNDISPUTED
        if not named:
            disputed = disputed_keys(places, eras, are_all_there=not _is_filtered(manifest))
        if disputed.is_number_guessed:
            eras = (Era(eras[-1].partitions),)
        homes = replace(
            _homes_at(eras, instant),
            disputed=disputed.chosen,
            is_number_guessed=disputed.is_number_guessed,
        )
        homes = with_misplaced(homes, places)
        if not disputed.is_number_guessed:
            found.partition_counts[topic] = homes.partitions
        if homes.disputed or homes.misplaced or homes.perhaps is not None:
            found.homes[topic] = homes
    return found


def _numbers_that_fit(
    reader: RecordReader, topic: str, named: Sequence[Era], least: int
) -> NDArray[np.int64]:
    """Return the numbers of partitions that put each key of a topic where it lies.

    There is one in nearly every dump. Keys are looked at a few at a time, and not kept.
    """
    if len(named) > 1:
        return np.empty(0, np.int64)
    numbers = np.arange(max(least, 1), MOST_PARTITIONS + 1)
    if named:
        numbers = np.array([named[0].partitions])
    for rows in _in_lots(_distinct_keys(reader, topic)):
        places = rows.drop_nulls("key")
        # Many numbers fit few keys: the first ones leave hardly any.
        for some in (places.head(_FEW), places.slice(_FEW)):
            numbers = numbers[numbers_that_fit(some, numbers)]
        if not len(numbers):
            break
    return numbers


def _in_lots(pieces: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield rows in lots of many: a small dump has hundreds of files with few keys each."""
    held: list[pl.DataFrame] = []
    rows = 0
    for each in pieces:
        held.append(each)
        rows += len(each)
        if rows >= _LOT:
            yield pl.concat(held).unique()
            held, rows = [], 0
    if held:
        yield pl.concat(held).unique()


def _homes_at(eras: tuple[Era, ...], instant: AsOf) -> TopicHomes:
    at = None if instant.timestamp_ms is None else moment(instant.timestamp_ms)
    if instant.offsets and len(eras) > 1:
        # End offsets of partitions are no time: by which number clients went then nothing says.
        eras = (*eras[:-1], Era(eras[-1].partitions, NOT_SEEN))
    return homes_at(eras, at)


def _is_filtered(manifest: Manifest) -> bool:
    """Return whether keys were left out when the dump was decoded."""
    options = manifest["options"]
    filters = options.get("groups"), options.get("exclude_groups"), options.get("partitions")
    return any(filters)


def _least(manifest: Manifest, topic: str) -> int:
    """Return the fewest partitions that a topic has by its directories."""
    absent = manifest["absent_partitions"].get(topic, ())
    there = (each["partition"] for each in leading(manifest) if each["topic"] == topic)
    return max((*there, *absent), default=0) + 1


def key_places(reader: RecordReader, topic: str) -> pl.DataFrame:
    """Return `PLACES` of all keys of an internal topic."""
    found = [PLACES.to_frame(), *_pieces(reader, topic)]
    return _summed_up(pl.concat(found))


def _pieces(reader: RecordReader, topic: str) -> Iterator[pl.DataFrame]:
    at = pl.col("timestamp").cast(PLACES["first_at"])
    for rows in _keys(reader, topic, ("timestamp", "is_tombstone")):
        is_value = ~pl.col("is_tombstone") & pl.col("is_of_clients")
        told = rows.select(
            "key",
            "partition",
            at.alias("first_at"),
            at.alias("last_at"),
            pl.when(is_value).then(at).alias("last_value_at"),
        )
        yield _summed_up(told)


def _distinct_keys(reader: RecordReader, topic: str) -> Iterator[pl.DataFrame]:
    """Yield `key` and `partition` of all records, each pair once or some times."""
    if topic == SHARE_GROUP_STATE:
        for rows in _keys(reader, topic):
            yield rows.select("key", "partition").unique()
        return
    for name in sorted(tables_of((topic,)) & key_columns(GROUPS).keys()):
        yield from reader.key_places(name, topic)


def _keys(reader: RecordReader, topic: str, columns: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
    """Yield `key` and `partition` of all records, `is_of_clients` and further columns."""
    groups = key_columns(GROUPS)
    for name in sorted(tables_of((topic,)) & groups.keys()):
        fields = {"key": f"key.{groups[name]}", "partition": "partition"}
        fields |= {each: each for each in columns}
        key = pl.col("key")
        if topic == SHARE_GROUP_STATE:
            fields |= {"topic_id": "key.topic_id", "number": "key.partition"}
            key = share_key(key, pl.col("topic_id"), pl.col("number"))
        for rows in reader.pieces(name, fields, topic):
            yield rows.select(
                key.alias("key"),
                "partition",
                *columns,
                pl.lit(name in _VALUES).alias("is_of_clients"),
            )


def _summed_up(places: pl.DataFrame) -> pl.DataFrame:
    return (
        places.group_by("key", "partition")
        .agg(pl.col("first_at").min(), pl.col("last_at", "last_value_at").max())
        .drop_nulls("key")
        .select(PLACES.names())
        .cast(PLACES)
        .sort("key", "partition")
    )


def homes_metadata(homes: Mapping[str, TopicHomes]) -> dict[str, HomesEntry]:
    """Return what the section `replay` of a manifest says of them."""
    return {
        topic: {
            "partitions": each.partitions,
            "perhaps": each.perhaps,
            "misplaced": [list(pair) for pair in each.misplaced.items()],
            "unreachable": each.unreachable,
            "before": [
                {
                    "partitions": era.partitions,
                    "first": _time_or_none(era.first),
                    "last": _time_or_none(era.last),
                }
                for era in each.before
            ],
            "since": _time_or_none(each.since),
            "disputed": [list(pair) for pair in each.disputed.items()],
            "is_number_guessed": each.is_number_guessed,
        }
        for topic, each in homes.items()
    }


def homes_in(manifest: Manifest) -> dict[str, TopicHomes]:
    """Return the same of a manifest."""
    replay = manifest.get("replay")
    homes = {} if replay is None else replay.get("homes", {})
    return {
        topic: TopicHomes(
            each["partitions"],
            each["perhaps"],
            _numbers_of(each["misplaced"]),
            each["unreachable"],
            tuple(
                Era(era["partitions"], parsed_time(era["first"]), parsed_time(era["last"]))
                for era in each["before"]
            ),
            parsed_time(each["since"]),
            _numbers_of(each["disputed"]),
            each["is_number_guessed"],
        )
        for topic, each in homes.items()
    }


def _numbers_of(pairs: Iterable[Sequence[int]]) -> dict[int, int]:
    return {pair[0]: pair[1] for pair in pairs}


def _time_or_none(at: datetime | None) -> str | None:
    return None if at is None or at == NOT_SEEN else iso_time(at)
