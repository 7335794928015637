"""What a broker's own log says of the cases that it loaded, and what they are."""

from __future__ import annotations

import pytest

from tests.brokers.cases import Verdict, all_cases, verdict
from tests.brokers.thinning import GROUPS

NEW = f"""\
[main] INFO Finished loading of metadata from {GROUPS}-3 with epoch 2 in 9ms
[main] ERROR Failed to load metadata from {GROUPS}-4 with epoch 2 due to Replaying record X failed
java.lang.RuntimeException: Replaying record X from {GROUPS}-4 at offset 8 with producer failed
Caused by: java.lang.IllegalStateException: Cannot set the epoch of orders-0
[main] INFO Finished loading of metadata from {GROUPS}-5 with epoch 2 in 9ms
"""
OLD = f"""\
[main] INFO Finished loading offsets and group metadata from {GROUPS}-5 in 40 milliseconds
[main] ERROR Error loading offsets from {GROUPS}-4
java.lang.IllegalStateException: Unknown offset message version: 4
"""


@pytest.mark.parametrize(
    ("said", "offset", "why"),
    [
        (NEW, 8, "Cannot set the epoch of orders-0"),
        (OLD, None, "Unknown offset message version: 4"),
    ],
)
def test_a_refused_partition_is_told_with_its_reason(said: str, offset: int, why: str) -> None:
    assert verdict(4, said) == Verdict(True, offset, why)
    assert verdict(5, said) == Verdict(False)


def test_what_neither_loaded_nor_failed_is_not_told() -> None:
    assert verdict(7, NEW).is_refused is None


def test_verdicts_agree_on_what_both_know() -> None:
    assert Verdict(True, 8).agrees(Verdict(True))
    assert not Verdict(True, 8).agrees(Verdict(True, 7))
    assert not Verdict(False).agrees(Verdict(True, 8))
    assert not Verdict(None).agrees(Verdict(False))


def test_every_case_lies_in_a_partition_of_its_own() -> None:
    cases = all_cases()
    assert len({each.partition for each in cases}) == len(cases)
    assert "handover-compacted" in {each.name for each in cases}
    assert len({each.segment for each in cases}) == len(cases)
