"""Resetting to a previous state: checkpoints of operators are merged into one.

The sections are those of the document on consumer groups in a consistent region.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.seeds.region.contributions import CheckpointKey, Contribution
from analytics.seeds.region.merge import Checkpoint, merged
from analytics.seeds.region.table import of_checkpoint, of_indexes
from schemas.evaluation_rules import region_rules
from tests.support.reference_merge import Message, merges
from tests.unit.seeds.region.contributed import RULES, checkpoint, contribution, place

WHOLE = (
    contribution("A", {"t-0": 10}, at=1000),
    contribution("B", {"t-1": 20}, at=1500),
    contribution("C", {"t-2": 30}, at=2000),
)


def words(each: Checkpoint) -> list[str]:
    return [found.word for found in of_checkpoint(each, RULES.merge.timeout_ms)]


# --- Reset processing to a previous state using a checkpoint ---------------------------------


def test_n_contributions_with_n_different_names_are_complete() -> None:
    found = checkpoint(*WHOLE)
    assert found.is_merged
    assert found.missing is None
    assert {key: each.offset for key, each in found.offsets.items()} == {
        ("t", 0): 10,
        ("t", 1): 20,
        ("t", 2): 30,
    }
    assert words(found) == []


def test_an_operator_that_does_not_contribute_is_named() -> None:
    found = checkpoint(*WHOLE[:2])
    assert not found.is_merged
    assert found.missing == "C did not contribute"
    assert words(found) == ["contribution_missing"]


def test_a_repeat_counts_once() -> None:
    found = checkpoint(WHOLE[0], WHOLE[0], WHOLE[1])
    assert (len(found.contributors), found.repeats, found.is_merged) == (2, 1, False)
    assert words(found) == ["contribution_missing", "contribution_repeated"]


def test_a_further_reset_to_the_same_checkpoint_is_no_fault() -> None:
    again = (
        contribution("A", {"t-0": 10}, at=90_000, reset_attempt=1),
        contribution("B", {"t-1": 20}, at=90_010, reset_attempt=1),
    )
    found = checkpoint(*WHOLE, *again)
    assert found.is_merged
    assert (found.repeats, found.made_at, found.last_at) == (2, 2000, 90_010)
    assert words(found) == []


def test_sets_that_differ_are_told_and_the_largest_counts() -> None:
    small = contribution("A", {"t-0": 10}, names=("A", "B"))
    found = checkpoint(small, contribution("B", {"t-1": 20}))
    assert (found.expected, found.is_merged, found.absent) == (3, False, ["C"])
    assert words(found) == ["contribution_missing", "sets_differ"]


def test_as_many_names_are_not_all_names() -> None:
    """The group takes it for merged: three distinct names came. C's partitions are missing."""
    found = checkpoint(*WHOLE[:2], contribution("D", {"t-3": 1}))
    assert found.is_merged
    assert found.missing == "C did not contribute"
    assert words(found) == ["contribution_missing", "operator_not_registered"]


def test_one_partition_with_two_offsets_has_none() -> None:
    found = checkpoint(*WHOLE[:2], contribution("C", {"t-1": 25, "t-2": 30}))
    assert found.offsets["t", 1].offset is None
    assert found.conflicts == [("t", 1)]
    assert found.missing == "offsets of 1 partitions cannot be told"
    assert found.offsets["t", 1].missing == "operators name different offsets: B: 20, C: 25"
    assert words(found) == ["offsets_differ"]


def test_the_owner_decides_where_it_is_known() -> None:
    def owners(_key: CheckpointKey, partition: tuple[str, int], names: Sequence[str]) -> str:
        assert (partition, list(names)) == (("t", 1), ["B", "C"])
        return "C"

    made = (*WHOLE[:2], contribution("C", {"t-1": 25, "t-2": 30}))
    found = checkpoint(*made, owners=owners)
    assert (found.offsets["t", 1].offset, found.offsets["t", 1].decided_by) == (25, "C")
    assert found.missing is None
    assert words(found) == ["offsets_decided"]


def test_an_owner_that_contradicts_itself_decides_nothing() -> None:
    made = (*WHOLE, contribution("B", {"t-1": 21}))
    found = checkpoint(*made, owners=lambda *_: "B")
    assert found.conflicts == [("t", 1)]


def test_two_that_agree_do_not_contradict_each_other() -> None:
    found = checkpoint(*WHOLE[:2], contribution("C", {"t-1": 20}))
    assert found.offsets["t", 1].offset == 20
    assert words(found) == []


@pytest.mark.parametrize(
    ("reset_timeout", "max_poll_interval", "timeout"),
    [(180_000, 300_000, 15_000), (20_000, 300_000, 10_000), (180_000, 10_000, 5_000)],
)
def test_the_merge_timeout_is_the_least_of_three(
    reset_timeout: int, max_poll_interval: int, timeout: int
) -> None:
    given_ = {
        "merge_reset_timeout_ms": reset_timeout,
        "merge_max_poll_interval_ms": max_poll_interval,
    }
    assert region_rules(given_).merge.timeout_ms == timeout


@pytest.mark.parametrize(("at", "late"), [(16_000, []), (16_001, ["contribution_late"])])
def test_what_comes_after_the_timeout_is_late(at: int, late: list[str]) -> None:
    found = checkpoint(*WHOLE[:2], contribution("C", {"t-2": 30}, at=at))
    assert words(found) == late


def test_each_reset_attempt_waits_anew() -> None:
    found = checkpoint(*WHOLE, contribution("A", {"t-0": 10}, at=99_000, reset_attempt=1))
    assert found.late == ()


# --- Initialization ----------------------------------------------------------------------------


def test_all_members_must_be_in_the_same_region() -> None:
    made = [
        contribution("A", {"t-0": 10}, region_index=0),
        contribution("B", {"t-1": 10}, region_index=1, sequence_id=8),
    ]
    (found,) = of_indexes(merged(made, RULES.merge.timeout_ms))
    assert (found.word, found.detail) == ("region_index_differs", "operators name the regions 0, 1")


# --- Any order, any repeats, anything missing ------------------------------------------------

OPERATORS = ["A", "B", "C", "D"]
MESSAGES = st.lists(
    st.builds(
        Message,
        st.integers(1, 3),
        st.sampled_from(OPERATORS),
        st.lists(st.sampled_from(OPERATORS), min_size=1, max_size=4, unique=True),
        st.dictionaries(
            st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 2)),
            st.integers(0, 3),
            max_size=4,
        ),
    ),
    min_size=1,
    max_size=12,
)


def of_message(message: Message) -> Contribution:
    offsets = {f"{topic}-{number}": each for (topic, number), each in message.offsets.items()}
    return contribution(
        message.operator, offsets, names=message.operators, sequence_id=message.sequence_id
    )


@given(messages=MESSAGES, seed=st.integers(0, 1000))
def test_any_messages_in_any_order_are_merged_as_the_document_says(
    messages: list[Message], seed: int
) -> None:
    shuffled = [of_message(each) for each in (*messages, *messages[::2])]
    random.Random(seed).shuffle(shuffled)
    found = {each.key.sequence_id: each for each in merged(shuffled, RULES.merge.timeout_ms)}
    expected = merges(messages)
    assert set(found) == set(expected)
    for sequence_id, each in expected.items():
        ours = found[sequence_id]
        assert ours.is_merged == each.is_complete
        assert ours.contributors == sorted(each.operators)
        assert ours.absent == sorted(set(each.named) - set(each.operators))
        assert ours.strangers == sorted(set(each.operators) - set(each.named))
        assert set(ours.offsets) == set(each.offsets)
        for partition, said in each.offsets.items():
            assert ours.offsets[partition].offset == (said[0] if len(said) == 1 else None)
        is_whole = each.is_complete and not set(each.named) - set(each.operators)
        assert (ours.missing is None) == (is_whole and not ours.conflicts)


def test_a_partition_is_written_as_kafka_writes_it() -> None:
    assert place("my-topic-11") == ("my-topic", 11)
