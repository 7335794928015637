"""Groups are spread over buckets alike on every machine."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analytics.replay.log.topic_homes import internal_partition
from analytics.tables.record_keys import spread

_ALL = 1 << 64


def plain_spread(text: str) -> int:
    """Mix the UTF-8 bytes, eight at a time, by the factors of MurmurHash3, one text at a time."""
    units = text.encode()
    mixed = len(units)
    for at in range(0, len(units), 8):
        mixed ^= int.from_bytes(units[at : at + 8], "little")
        mixed = mixed * 0xFF51AFD7ED558CCD % _ALL
        mixed ^= mixed >> 32
    return (mixed * 0xC4CEB9FE1A85EC53 % _ALL) >> 33


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
    assert numbers(["billing", "orders-47", "gr\u00fcn"]) == [1012947622, 1143903369, 1099204332]


def test_groups_of_one_internal_partition_fill_all_buckets() -> None:
    names = pl.DataFrame({"group": [f"group-{number}" for number in range(40_000)]})
    of_one = names.filter(internal_partition(pl.col("group"), 50) == 7)
    buckets = of_one.select(spread(pl.col("group")) % 8)["group"].value_counts()["count"].to_list()
    assert len(buckets) == 8
    assert max(buckets) < 2 * min(buckets)
