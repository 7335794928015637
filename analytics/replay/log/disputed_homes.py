"""Keys of an internal topic of which nothing shows where clients look for them.

Where no number of partitions explains the places of all keys, and no metadata log names one, the
number that explains most of them is a guess. What lies in one partition, where that number has it,
is there whatever the number was; of every other key one place is read, and none is certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from analytics.replay.log.internal_partitions import hash_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.replay.log.topic_homes import Era


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
