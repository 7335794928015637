"""Where clients look for keys: in which partition of an internal topic, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl

from analytics.assignors.group import string_hash
from analytics.contracts import TIME

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Which partitions of an internal topic the keys of a column belong to (see `key_homes`).

# Which partition of an internal topic one key belongs to: ``Utils.abs(hashCode) mod partitions``.
#
# `analytics.replay.log.topic_homes` tells the same of columns of keys.

ALL_HASHES: Final = 1 << 32
LEAST_HASH: Final = 1 << 31
"""What the least hash would be without its sign: it has no positive counterpart and counts as 0."""


def home_of(key: str, partitions: int) -> int:
    """Return the partition that Kafka's coordinators choose.

    Args:
        key: A group id; for share state what `share_key` returns.
        partitions: How many partitions the internal topic has.
    """
    return hash_place(key) % partitions


def hash_place(key: str) -> int:
    """Return `Utils.abs(hashCode)` of a key: modulo a number of partitions it is a partition."""
    unsigned = string_hash(key)
    positive = min(unsigned, ALL_HASHES - unsigned)
    return 0 if positive == LEAST_HASH else positive


_OF_TWO_UNITS: Final = r"[\x{10000}-\x{10FFFF}]"
"""Letters that UTF-16 needs two code units for."""


_NONE: Final[Mapping[int, int]] = MappingProxyType({})


def internal_partition(
    key: pl.Expr, partitions: int, disputed: Mapping[int, int] = _NONE
) -> pl.Expr:
    """Return the partition that Kafka's coordinators choose for each key, null where there is none.

    Args:
        key: Group ids; for share state what `share_key` returns.
        partitions: How many partitions the internal topic has.
        disputed: Where keys are read of which that is not known, by their `hash_places`.
    """
    return key.map_batches(lambda keys: _homes(keys, partitions, disputed), return_dtype=pl.Int32)


def is_one_of(key: pl.Expr, places: Mapping[int, int]) -> pl.Expr:
    """Return whether `hash_places` of each key is among some."""
    among = np.array(sorted(places), np.int64)

    def looked_up(keys: pl.Series) -> pl.Series:
        distinct = keys.drop_nulls().unique()
        found = pl.Series(np.isin(hash_places(distinct), among))
        return keys.replace_strict(distinct, found, default=False, return_dtype=pl.Boolean)

    return key.map_batches(looked_up, return_dtype=pl.Boolean)


def share_key(group: pl.Expr, topic_id: pl.Expr, partition: pl.Expr) -> pl.Expr:
    """Return what share state is hashed by (``ShareCoordinatorService.partitionFor``)."""
    return pl.format("{}:{}:{}", group, topic_id, partition)


def _homes(keys: pl.Series, partitions: int, disputed: Mapping[int, int]) -> pl.Series:
    distinct = keys.drop_nulls().unique()
    homes = pl.Series(homes_of(distinct, partitions, disputed), dtype=pl.Int32)
    return keys.replace_strict(distinct, homes, default=None, return_dtype=pl.Int32)


_AT_ONCE: Final = 100_000


def homes_of(
    keys: pl.Series, partitions: int, disputed: Mapping[int, int] = _NONE
) -> NDArray[np.int64]:
    """Return the partition of each key; see `internal_partition`."""
    hashes = hash_places(keys)
    homes = np.asarray(hashes % partitions)
    if disputed:
        known = np.array(sorted(disputed), np.int64)
        kept = np.array([disputed[each] for each in known.tolist()], np.int64)
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        homes = np.where(known[at] == hashes, kept[at], homes)
    return homes


def hash_places(keys: pl.Series) -> NDArray[np.int64]:
    """Return `Utils.abs(hashCode)` of each key: modulo a number of partitions it is a partition."""
    unsigned = string_hashes(keys).astype(np.int64)
    positive = np.minimum(unsigned, ALL_HASHES - unsigned)
    return np.where(positive == LEAST_HASH, 0, positive)


def string_hashes(texts: pl.Series) -> NDArray[np.uint32]:
    """Return `String.hashCode` of each, unsigned.

    That is the sum of its UTF-16 code units, each times 31 to the power of how many follow; the
    numbers overflow as Java's do.
    """
    # Each code unit takes some thirty bytes.
    slices = [_hashes_of(texts.slice(at, _AT_ONCE)) for at in range(0, len(texts), _AT_ONCE)]
    return np.concatenate([np.zeros(0, np.uint32), *slices])


def _hashes_of(texts: pl.Series) -> NDArray[np.uint32]:
    units, lengths = _code_units(texts)
    ends = np.cumsum(lengths, dtype=np.int64)
    powers = np.full(int(lengths.max(initial=0)) + 1, 31, np.uint32)
    powers[0] = 1
    powers = np.cumprod(powers, dtype=np.uint32)
    follow = np.repeat(ends, lengths) - 1 - np.arange(units.size)
    sums = np.zeros(units.size + 1, np.uint32)
    np.cumsum(units * powers[follow], dtype=np.uint32, out=sums[1:])
    hashes: NDArray[np.uint32] = sums[ends] - sums[ends - lengths]
    return hashes


def _code_units(texts: pl.Series) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the UTF-16 code units of all texts, and how many each has."""
    bytes_of = texts.str.len_bytes()
    # Most names are ASCII: their bytes are their code units.
    if (texts.str.len_chars() == bytes_of).all():
        joined = texts.str.join("").cast(pl.Binary).item() if len(texts) else b""
        return np.frombuffer(joined, np.uint8).astype(np.uint32), bytes_of.to_numpy()
    units = "".join(texts.to_list()).encode("utf-16-le")
    lengths = texts.str.len_chars() + texts.str.count_matches(_OF_TWO_UNITS)
    return np.frombuffer(units, "<u2").astype(np.uint32), lengths.to_numpy()


# Where clients look for what an internal topic says of a key, and since when they look there.
#
# A coordinator is found by the hash of its key modulo the number of partitions that brokers knew
# when they were started. Where a topic was given more partitions, the new number counts from the
# restart of the brokers on; what then lies in another partition is out of reach, though it is
# still loaded. So a topic has eras. Between two of them the brokers may have gone by either
# number.
#
# The metadata log tells of eras (`analytics.replay.topics`). Where it does not, the log
# of the topic shows them: a key whose records go on in another partition.
#
# Where no number of partitions explains the places of all keys, and no metadata log names one,
# the number that explains most of them is a guess. What lies in one partition, where that number
# has it, is there whatever the number was; of every other key one place is read, and none is
# certain.

DEFAULT_PARTITIONS: Final = 50
"""Of the internal topics of coordinators as Kafka makes them by default."""
MOST_PARTITIONS: Final = 1000
NOT_SEEN: Final = datetime.max.replace(tzinfo=UTC)
"""When an era began whose beginning nothing shows."""
_MOST_KEYS: Final = 1000

PLACES: Final = pl.Schema(
    {
        "key": pl.String(),
        "partition": pl.Int32(),
        "first_at": TIME,
        "last_at": TIME,
        "last_value_at": TIME,
    }
)
"""A row per key and partition: when its first and its last record there were written, and the last
that is a commit or a state rather than a tombstone."""


@dataclass(frozen=True)
class Era:
    """A time in which clients went by one number of partitions.

    Attributes:
        partitions: The number.
        first: From when on they certainly did; None is from the beginning, `NOT_SEEN` unknown.
        last: Until when they certainly did; None is to the end.
    """

    partitions: int
    first: datetime | None = None
    last: datetime | None = None


@dataclass(frozen=True)
class TopicHomes:
    """Where keys of an internal topic are looked for at an instant.

    Attributes:
        partitions: By which number of partitions.
        perhaps: The number that brokers may have gone by instead; None where it is certain.
        misplaced: How many keys of other partitions lie in a partition, where there are any.
        unreachable: How many keys lie in such partitions alone.
        before: The eras that are over, the newest first.
        since: From when on this number counts; None where it always did or nothing shows it.
        disputed: Keys of which nothing shows where clients look for them, as `hash_places` has
            them, and in which partition each is read.
        is_number_guessed: Whether no number of partitions explains where all keys lie.
    """

    partitions: int
    perhaps: int | None = None
    misplaced: Mapping[int, int] = field(default_factory=dict)
    unreachable: int = 0
    before: tuple[Era, ...] = ()
    since: datetime | None = None
    disputed: Mapping[int, int] = field(default_factory=dict)
    is_number_guessed: bool = False

    def is_disputed(self, key: str) -> bool:
        """Return whether nothing shows where clients look for a key."""
        return bool(self.disputed) and hash_place(key) in self.disputed

    def home(self, key: str) -> int:
        """Return the partition in which a key is read."""
        place = hash_place(key)
        return self.disputed.get(place, place % self.partitions)


def homes_at(eras: Sequence[Era], at: datetime | None) -> TopicHomes:
    """Return by which number keys are looked for at an instant.

    Args:
        eras: In order, at least one.
        at: The instant; None is the end of the dump.
    """
    number = 0
    for place, each in enumerate(eras):
        if each.first is None or (each.first != NOT_SEEN and (at is None or at >= each.first)):
            number = place
    era = eras[number]
    later = eras[number + 1] if number + 1 < len(eras) else None
    is_over = later is not None and (at is None or era.last is None or at > era.last)
    return TopicHomes(
        era.partitions,
        later.partitions if later is not None and is_over else None,
        before=tuple(reversed(eras[:number])),
        since=era.first,
    )


def with_misplaced(homes: TopicHomes, places: pl.DataFrame) -> TopicHomes:
    """Add which partitions hold keys of others.

    Args:
        homes: Of the topic.
        places: `PLACES`.
    """
    home = pl.Series(homes_of(places["key"], homes.partitions, homes.disputed))
    is_wrong = home != places["partition"]
    wrong, right = places.filter(is_wrong), places.filter(~is_wrong)
    counts = wrong.group_by("partition").len().sort("partition")
    return replace(
        homes,
        misplaced=dict(counts.iter_rows()),
        unreachable=wrong.join(right, on="key", how="anti")["key"].n_unique(),
    )


def eras_of(places: pl.DataFrame, named: Sequence[Era], least: int) -> tuple[Era, ...]:
    """Return the eras of a topic, none where nothing shows that a key is anywhere but at home.

    Args:
        places: `PLACES`, of all records in the dump.
        named: Eras that the metadata log tells; none where there is no such log.
        least: The fewest partitions that the topic can have now.
    """
    if places.is_empty():
        return tuple(named)
    if len(named) > 1:
        return tuple(_with_moves(named, places))
    several = places.filter(pl.len().over("key") > 1)
    if several.is_empty():
        return tuple(named)
    told = _with_hashes(places)
    now = named[0].partitions if named else _number_now(told, least)
    return _with_earlier(told, now)


class Disputed(NamedTuple):
    """What cannot be told of the keys of a topic.

    Attributes:
        chosen: By `hash_places` of a key in which of its partitions it is read.
        is_number_guessed: Whether a key that lies in several partitions lies in none where any
            number sends its clients: then of no such key it is certain which partition counts.
    """

    chosen: dict[int, int]
    is_number_guessed: bool


UNDISPUTED: Final = Disputed({}, is_number_guessed=False)


def disputed_keys(
    places: pl.DataFrame, eras: Sequence[Era], *, are_all_there: bool = True
) -> Disputed:
    """Return the keys of which no era tells where clients look for them.

    Args:
        places: `PLACES` of `topic_homes`, of all records in the dump.
        eras: As the places show them, at least one; the metadata log tells of none.
        are_all_there: Whether no filter left keys out. Of few keys nothing is certain: some number
            puts nearly any one key where it went on.
    """
    hashes, here = hash_places(places["key"]), places["partition"].to_numpy()
    numbers = np.array([each.partitions for each in eras])
    is_explained = (hashes[:, None] % numbers[None, :] == here[:, None]).any(axis=1)
    told = places.with_columns(
        pl.Series("hash", hashes, pl.Int64),
        pl.Series("is_explained", is_explained),
        pl.Series("is_home", hashes % numbers[-1] == here),
        (pl.len().over("key") > 1).alias("is_in_several"),
    )
    is_stray = ~pl.col("is_explained").any().over("key")
    is_unexplained = is_stray if are_all_there else pl.lit(value=True)
    is_guess = bool(told.select((is_unexplained & pl.col("is_in_several")).any()).item())
    is_disputed = is_stray | pl.col("is_in_several") if is_guess else is_stray
    # Where none of its places is at home, the one with its last commit is read.
    order = ("is_home", pl.coalesce("last_value_at", "first_at"), "partition")
    kept = (
        told.filter(is_disputed)
        .sort(*order, descending=[True, True, False], nulls_last=True)
        .unique("key", keep="first", maintain_order=True)
        .sort("hash")
    )
    return Disputed(dict(kept.select("hash", "partition").iter_rows()), is_guess)


def _with_hashes(places: pl.DataFrame) -> pl.DataFrame:
    """Add `hash`, `is_newest` and `written_until`; keys in several partitions come first.

    The newest place of a key is the one with the last commit. Tombstones do not count: a
    coordinator that still has a group in memory goes on to expire it.
    """
    written = pl.coalesce("last_value_at", "first_at")
    told = places.with_columns(
        written.alias("written_until"),
        pl.len().over("key").alias("number_of_places"),
        pl.Series("hash", hash_places(places["key"])),
    )
    newest = pl.col("written_until").max().over("key")
    return told.with_columns(
        (pl.col("written_until").is_null() | (pl.col("written_until") == newest)).alias("is_newest")
    ).sort("number_of_places", "key", descending=[True, False])


def _sample(places: pl.DataFrame) -> pl.DataFrame:
    keys = places["key"].unique(maintain_order=True).head(_MOST_KEYS)
    return places.filter(pl.col("key").is_in(keys.implode()))


def _number_now(places: pl.DataFrame, least: int) -> int:
    """Return the number of partitions by which all keys that moved are where they went on.

    Of several such numbers the one that puts most other keys where they are counts, then Kafka's
    default, then the least. Where no number has all of them at home, the one that has most keys
    there is a guess: see `analytics.replay.log.topic_homes`.
    """
    few = _sample(places)
    numbers = np.arange(max(least, 1), MOST_PARTITIONS + 1)
    moved = few.filter(pl.col("number_of_places") > 1)
    for among in (moved.filter("is_newest"), moved):
        fits = _fits(among, numbers)
        names = among["key"].rle_id().to_numpy()
        is_home = np.zeros((int(names.max()) + 1, len(numbers)), bool)
        np.logical_or.at(is_home, names, fits)
        is_possible = is_home.all(axis=0)
        if is_possible.any():
            break
    others = _fits(few.filter(pl.col("number_of_places") == 1), numbers).sum(axis=0)
    at_home = (
        np.where(is_possible, others, -1) if is_possible.any() else others + is_home.sum(axis=0)
    )
    best = numbers[at_home == at_home.max()]
    return DEFAULT_PARTITIONS if DEFAULT_PARTITIONS in best else int(best[0])


def numbers_that_fit(places: pl.DataFrame, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each number of partitions whether it puts every key where it lies.

    Args:
        places: Has `key` and `partition`.
        numbers: Of partitions.
    """
    hashed = places.with_columns(pl.Series("hash", hash_places(places["key"]), pl.Int64))
    return np.asarray(_fits(hashed, numbers).all(axis=0))


def _fits(places: pl.DataFrame, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each place and number whether the place is the home of its key."""
    hashes, here = places["hash"].to_numpy(), places["partition"].to_numpy()
    return np.asarray((hashes[:, None] % numbers[None, :]) == here[:, None])


def _with_earlier(places: pl.DataFrame, now: int) -> tuple[Era, ...]:
    """Return the eras before the present one that explain where other records of keys lie.

    An earlier number explains a place whose last commit is older than the first record at the
    key's next place. A copy of a log in another partition's directory is explained by none.
    """
    home = pl.col("hash") % now == pl.col("partition")
    arrived = pl.col("first_at").filter(home).min().over("key")
    is_earlier = ~home & (pl.col("written_until") < arrived)
    left = places.with_columns(arrived.alias("arrived"), is_earlier.alias("is_earlier"))
    unexplained = left.filter("is_earlier")
    if unexplained.is_empty():
        return (Era(now),)
    singles = _sample(places.filter(pl.col("number_of_places") == 1))
    numbers = [now]
    fewer = np.arange(1, now)
    while unexplained.height and len(fewer):
        score = _fits(_sample(unexplained), fewer).sum(axis=0)
        if not score.max():
            break
        best = fewer[score == score.max()]
        others = _fits(singles, best).sum(axis=0)
        best = best[others == others.max()]
        number = DEFAULT_PARTITIONS if DEFAULT_PARTITIONS in best else int(best[-1])
        unexplained = unexplained.filter(pl.col("hash") % number != pl.col("partition"))
        fewer = fewer[fewer < number]
        numbers.insert(0, number)
    return tuple(_bounded(numbers, places))


def _bounded(numbers: Sequence[int], places: pl.DataFrame) -> list[Era]:
    """Return eras with the times that keys show whose home changed from one to the next."""
    eras = [Era(each) for each in numbers]
    is_home = [pl.col("hash") % each == pl.col("partition") for each in numbers]
    # A place where a key was by several numbers tells of none of them.
    by_one = places.filter(pl.sum_horizontal(is_home) == 1)
    for place, (old, new) in enumerate(pairwise(is_home)):
        last, first = (
            by_one.filter(old)["written_until"].max(),
            by_one.filter(new)["first_at"].min(),
        )
        if isinstance(last, datetime) and isinstance(first, datetime):
            # Brokers are started again one after the other: in between both numbers count.
            last, first = min(last, first), max(last, first)
        eras[place] = replace(eras[place], last=last if isinstance(last, datetime) else None)
        first = first if isinstance(first, datetime) else NOT_SEEN
        eras[place + 1] = replace(eras[place + 1], first=first)
    return eras


def _with_moves(named: Sequence[Era], places: pl.DataFrame) -> list[Era]:
    """Return eras of the metadata log, with beginnings that it does not show and records do.

    That clients commit where only the new number sends them shows that brokers go by it.
    """
    found = list(named)
    hashes = hash_places(places["key"])
    for number in range(1, len(found)):
        if found[number].first != NOT_SEEN:
            continue
        old, new = found[number - 1].partitions, found[number].partitions
        here = places["partition"].to_numpy()
        has_moved = (hashes % new == here) & (hashes % old != here)
        first = places.filter(pl.Series(has_moved))["first_at"].min()
        if isinstance(first, datetime):
            found[number] = replace(found[number], first=first)
    return found
