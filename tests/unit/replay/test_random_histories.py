"""Random histories of groups, replayed by polars and by a slow coordinator, at random instants."""

from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from analytics.replay.log.log_times import AsOf, cut_all
from analytics.replay.log.rules import replay_rules
from tests.support.decoded_frames import frames_of
from tests.support.group_histories import TABLES, TOPIC, decoded_rows, random_history
from tests.support.random_group_values import NAMED_TOPICS
from tests.support.reference_group_coordinator import tables_of
from tests.support.replayed_tables import replayed_tables

RELEASES = ("3.9", "4.0", "4.1", "4.2", "4.3")


def check_histories(release: str, seed: int, histories: int) -> None:
    """Replay many histories, each its own internal partition and as of an end of its own."""
    chance = random.Random(seed)
    records, ends = [], {}
    for partition in range(histories):
        history = random_history(chance, partition, release)
        records.extend(history)
        if chance.randrange(4):
            last = history[-1].offset if history else 0
            ends[partition] = chance.randrange(last + 2)
    expected = vars(tables_of(records, ends, release, NAMED_TOPICS))
    shuffled = chance.sample(records, len(records))
    decoded = frames_of(decoded_rows(shuffled), (*TABLES, "transaction_log"))
    as_of = AsOf({(TOPIC, partition): end for partition, end in ends.items()})
    names = pl.DataFrame(
        {"topic": list(NAMED_TOPICS.values()), "topic_id": list(NAMED_TOPICS.keys())}
    )
    found = replayed_tables(cut_all(decoded, as_of), names, replay_rules(release))
    for name, told in expected.items():
        assert found[name].keys() == told.keys(), (release, seed, name)
        for key, row in told.items():
            assert {field: found[name][key][field] for field in row} == row, (release, seed, name)


# A history's seed says nothing by being small, so failures are not shrunk: their seed is printed.
def examples(number: int) -> settings:
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=number, phases=phases, deadline=None)


SEEDS = st.integers(0, 1 << 32)


@examples(2)
@given(seed=SEEDS)
def test_random_histories_at_random_instants_equal_the_reference(seed: int) -> None:
    check_histories("4.3", seed, 200)


@examples(1)
@given(seed=SEEDS)
def test_random_histories_under_the_rules_of_3_9_equal_the_reference(seed: int) -> None:
    check_histories("3.9", seed, 120)


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
@examples(4)
@given(seed=SEEDS)
def test_ten_thousand_random_histories_equal_the_reference(release: str, seed: int) -> None:
    check_histories(release, seed, 500)
