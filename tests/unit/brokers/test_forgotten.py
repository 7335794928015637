"""A running coordinator of 3.x forgets commits of open transactions when a deletion meets them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.brokers.forgotten import forgotten_keys, with_forgotten
from tests.brokers.releases import Release

_BATCH = "baseOffset: 7 lastOffset: 7 producerId: 5 isTransactional: {} isControl: false size: 9"
_KEY = '| offset: 7 key: {{"type":"1","data":{{"group":"g","topic":"t","partition":{}}}}} payload: '
KEY = ("g", "t", 0)


def printed(
    *, transactional: bool, partition: int = 0, value: str = '{"version":"3"}'
) -> list[str]:
    return [_BATCH.format(str(transactional).lower()), _KEY.format(partition) + value]


COMMIT = printed(transactional=True)
TOMBSTONE = printed(transactional=False, value="<DELETE>")


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ([*COMMIT, *TOMBSTONE], {KEY}),
        ([*TOMBSTONE, *COMMIT], set()),
        ([*printed(transactional=False), *TOMBSTONE], set()),
        ([*printed(transactional=True, partition=1), *TOMBSTONE], set()),
    ],
)
def test_only_a_tombstone_behind_a_commit_in_a_transaction_makes_it_forget(
    lines: list[str], keys: set[tuple[str, str, int]]
) -> None:
    assert forgotten_keys(lines) == keys


def state(*, groups: tuple[str, ...] = (), offsets: tuple[int, ...] = ()) -> dict[str, Any]:
    return {
        "groups": [{"group_id": each, "listed": {"protocolType": ""}} for each in groups],
        "committed_offsets": [
            {"group_id": "g", "topic": "t", "partition": each} for each in offsets
        ],
        "unstable_offsets": [],
    }


def test_only_what_it_may_have_forgotten_is_added() -> None:
    loaded = state(groups=("g", "other"), offsets=(0, 1))
    told, words = with_forgotten(state(), loaded, {KEY}, Release("3.9.2"))
    assert told == state(groups=("g",), offsets=(0,))
    assert words == ["groups of g", "committed_offsets of g"]


def test_what_it_remembers_stays_as_it_said() -> None:
    running = state(groups=("g",), offsets=(0,))
    assert with_forgotten(running, running, {KEY}, Release("3.9.2")) == (running, [])


def test_releases_since_4_0_forget_nothing() -> None:
    told, words = with_forgotten(state(), state(groups=("g",)), {KEY}, Release("4.0.2"))
    assert (told, words) == (state(), [])
