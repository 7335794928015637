"""Groups are spread over buckets alike on every machine."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analytics.replay.log.internal_partitions import internal_partition
from analytics.tables.record_keys import spread

_ALL = 1 << 64


def plain_spread(text: str) -> int:
    """Mix Java's `String.hashCode` as the last step of MurmurHash3 does, one text at a time."""
    mixed = 0
    units = text.encode("utf-16-le")
    for at in range(0, len(units), 2):
        mixed = (31 * mixed + int.from_bytes(units[at : at + 2], "little")) % (1 << 32)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed = (mixed ^ mixed >> 33) * factor % _ALL
    return mixed >> 33


def numbers(texts: list[str | None]) -> list[int]:
    return (
        pl.DataFrame({"text": texts}, {"text": pl.String})
        .select(spread(pl.col("text")))["text"]
        .to_list()
    )


@given(st.lists(st.none() | st.text() | st.text("abc-0123456789"), max_size=20))
def test_a_text_has_the_number_that_a_plain_loop_gives_it(texts: list[str | None]) -> None:
    assert numbers(texts) == [plain_spread(text or "") for text in texts]


def test_numbers_do_not_change_from_release_to_release() -> None:
    assert numbers(["billing", "orders-47", "gr\u00fcn"]) == [41983733, 19328249, 2012709262]


def test_groups_of_one_internal_partition_fill_all_buckets() -> None:
    names = pl.DataFrame({"group": [f"group-{number}" for number in range(40_000)]})
    of_one = names.filter(internal_partition(pl.col("group"), 50) == 7)
    buckets = of_one.select(spread(pl.col("group")) % 8)["group"].value_counts()["count"].to_list()
    assert len(buckets) == 8
    assert max(buckets) < 2 * min(buckets)
