"""Sums that a number of 64 bits cannot hold are the largest that it can."""

from __future__ import annotations

from collections import defaultdict

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from analytics.questions.lag.sums import sums_of
from analytics.questions.share import status as share_status
from analytics.questions.sums import MOST, held_sum
from schemas.evaluation_rules import lag_rules
from schemas.share_rules import share_rules
from tests.support.contract_rows import rows_of

AMOUNTS = st.integers(-(2**63), MOST) | st.sampled_from([0, 1, MOST, -(2**63)]) | st.none()


@given(st.lists(st.tuples(st.sampled_from("ab"), AMOUNTS), max_size=8))
@example([("a", MOST), ("a", MOST), ("b", MOST), ("b", 1)])
def test_sums_are_those_of_whole_numbers_as_far_as_they_fit(
    rows: list[tuple[str, int | None]],
) -> None:
    there: dict[str, list[int]] = defaultdict(list)
    for key, amount in rows:
        there[key] += [] if amount is None else [amount]
    expected = {
        key: max(-(2**63), min(MOST, sum(amounts))) if amounts else None
        for key, amounts in there.items()
    }
    amounts = pl.DataFrame(rows, {"key": pl.String, "lag": pl.Int64}, orient="row")

    found = amounts.group_by("key").agg(held_sum("lag"))

    assert dict(found.iter_rows()) == expected
    assert found.schema["lag"] == pl.Int64


def partitions(kind: str | None = None) -> list[dict[str, object]]:
    """Two partitions of a group with the largest lag there can be."""
    place = {"group_id": "g", "topic": "t", "kind": kind, "lag": MOST, "lost_offsets": MOST}
    return [{**place, "partition": number} for number in range(2)]


def test_the_lag_of_a_group_does_not_wrap() -> None:
    words = {"verdict": "unread", "status": "NOT_EVALUABLE"}
    for kind, name in (("assigned", "lag"), ("stale", "stale_lag")):
        rows = rows_of("lag", [row | words for row in partitions(kind)])
        (row,) = sums_of(rows, "group", lag_rules()).to_dicts()
        assert (row[name], row["lost_offsets"], row["partitions"]) == (MOST, MOST, 2)


def test_the_backlog_of_a_share_group_does_not_wrap() -> None:
    words = {"status": "behind", "records_left": MOST}
    rows = rows_of("share_backlog", [row | words for row in _without_kind()])
    (row,) = share_status.sums_of(rows, "group", share_rules()).to_dicts()
    assert (row["lag"], row["records_left"], row["lost_offsets"]) == (MOST, MOST, MOST)


def _without_kind() -> list[dict[str, object]]:
    return [{name: row[name] for name in row if name != "kind"} for row in partitions()]
