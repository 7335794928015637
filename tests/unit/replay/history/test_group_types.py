"""Random histories: what type a group was of, and its epoch, is what a slow coordinator knew."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from itertools import chain

import polars as pl
import pytest

from analytics.replay.history.group_history import group_history, group_steps
from analytics.replay.log.losses import WHOLE
from analytics.replay.log.rules import replay_rules
from tests.support.group_histories import random_history
from tests.support.group_types_told import Known, told_one_by_one
from tests.support.history_log import history_rows, topic_names

HISTORIES = 400


@pytest.mark.parametrize("release", ["4.0", "4.3"])
def test_what_a_group_was_after_every_record(release: str) -> None:
    chance = random.Random(f"types {release}")
    histories = [random_history(chance, number, release) for number in range(HISTORIES)]
    rules = replay_rules(release)
    rows = history_rows(chain.from_iterable(histories))
    made = group_history(group_steps(rows, rules), rows, topic_names({}), rules, WHOLE)
    moments = made["moments"].filter(pl.col("group").is_not_null()).sort("position")
    found: dict[str, list[tuple[int, Known]]] = defaultdict(list)
    for each in moments.iter_rows(named=True):
        known = each["group"]["family"], each["group"]["epoch"]
        found[each["group_id"]].append((each["position"], known))
    conversions = made["events"].filter(pl.col("event") == "converted")
    assert conversions.height > HISTORIES / 20
    for history in histories:
        for name, expected in told_one_by_one(history, release).items():
            for offset, (family, epoch) in expected:
                place = bisect_right(found[name], offset, key=lambda each: each[0])
                here = found[name][place - 1][1] if place else (None, None)
                assert here[0] == family, (name, offset)
                told = rules.initial_epoch if family and here[1] is None else here[1]
                assert told == epoch, (name, offset)
