"""The history of groups that is made bucket after bucket is what is made of all of them at once."""

from __future__ import annotations

import random
from itertools import chain
from typing import TYPE_CHECKING

from analytics.replay.graph import needed_for, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.log import group_buckets
from analytics.replay.log.coverage import WHOLE
from analytics.replay.log.rules import replay_rules
from tests.support.decoded_frames import frames_of
from tests.support.group_histories import TABLES, decoded_rows, random_history
from tests.support.random_group_values import NAMED_TOPICS

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import Row, SparkSession

HISTORIES, FEW_ROWS = 60, 200
MADE = ("group_epochs", "membership_changes", "assignment_history", "load_faults", "owned")


def test_buckets_tell_what_all_groups_at_once_tell(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random("buckets")
    histories = [random_history(chance, number, "4.3") for number in range(HISTORIES)]
    rows = decoded_rows(chain.from_iterable(histories))
    names = spark.createDataFrame(list(NAMED_TOPICS.items()), "topic_id string, topic string")
    given = {
        "cut": frames_of(spark, rows, (*TABLES, "share_group_partition_metadata", "undecoded")),
        "topics": names,
        "rules": replay_rules("4.3"),
        "coverage": WHOLE,
    }
    steps = needed_for(HISTORY, MADE)
    at_once = resolve(steps, given)
    monkeypatch.setattr(group_buckets, "MOST_ROWS", FEW_ROWS)
    in_buckets = resolve(steps, given)
    assert at_once["group_rows"].buckets == 1
    assert in_buckets["group_rows"].buckets > HISTORIES // 20
    for name in MADE:
        expected, found = (_in_order(made[name].collect()) for made in (at_once, in_buckets))
        assert expected
        assert found == expected, name


def _in_order(rows: list[Row]) -> list[str]:
    return sorted(map(str, rows))
