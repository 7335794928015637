"""Random histories of groups, replayed on Spark and by a slow coordinator, at random instants."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analytics.replay.log.as_of import cut_all
from analytics.replay.log.instants import AsOf
from analytics.replay.log.rules import replay_rules
from tests.support.decoded_frames import frames_of
from tests.support.group_histories import TABLES, TOPIC, decoded_rows, random_history
from tests.support.random_group_values import NAMED_TOPICS
from tests.support.reference_group_coordinator import tables_of
from tests.support.replayed_tables import replayed_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RELEASES = ("3.9", "4.0", "4.1", "4.2", "4.3")


def check_histories(spark: SparkSession, release: str, seed: int, histories: int) -> None:
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
    decoded = frames_of(spark, decoded_rows(shuffled), (*TABLES, "transaction_log"))
    as_of = AsOf({(TOPIC, partition): end for partition, end in ends.items()})
    names = spark.createDataFrame(
        [(name, each) for each, name in NAMED_TOPICS.items()], "topic string, topic_id string"
    )
    found = replayed_tables(cut_all(decoded, as_of), names, replay_rules(release))
    for name, told in expected.items():
        assert found[name].keys() == told.keys(), (release, seed, name)
        for key, row in told.items():
            assert {field: found[name][key][field] for field in row} == row, (release, seed, name)


# A history's seed says nothing by being small, so failures are not shrunk: their seed is printed.
def examples(number: int) -> settings:
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    checks = [HealthCheck.function_scoped_fixture]
    return settings(max_examples=number, phases=phases, suppress_health_check=checks)


SEEDS = st.integers(0, 1 << 32)


@examples(2)
@given(seed=SEEDS)
def test_random_histories_at_random_instants_equal_the_reference(
    spark: SparkSession, seed: int
) -> None:
    check_histories(spark, "4.3", seed, 200)


@examples(1)
@given(seed=SEEDS)
def test_random_histories_under_the_rules_of_3_9_equal_the_reference(
    spark: SparkSession, seed: int
) -> None:
    check_histories(spark, "3.9", seed, 120)


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
@examples(4)
@given(seed=SEEDS)
def test_ten_thousand_random_histories_equal_the_reference(
    spark: SparkSession, release: str, seed: int
) -> None:
    check_histories(spark, release, seed, 500)
