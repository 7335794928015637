"""The truth that verdicts are held against: made by those who acted, answered for by brokers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.verdicts.happened import EXPIRED, LOST, REWOUND, WHILE_EMPTY, history_of
from tests.verdicts.incidents import TIMELINES, timeline_of
from tests.verdicts.truth import DATA, home_of, read_truth, removals_in
from tests.verdicts.witness import Act, acts_in

REMOVALS = Path(__file__).parents[1] / "data" / "expiry"
WITH_TWO_LINES = "kafka-4.3.1-failover"
"""What brokers answered is told of it, too: `tests/jobs/test_failover_sentences.py` counts anew."""
KEY = ("orders-app", "orders", 0)


def _commit(at: int, offset: int, *, by_member: bool = True, is_certain: bool = True) -> Act:
    until = at if is_certain else at + 100
    return Act(
        "commit", (at, until), at, KEY[0], {KEY[1:]: offset}, by_member, is_certain=is_certain
    )


def test_a_smaller_commit_is_a_step_back_of_whoever_committed() -> None:
    history = history_of(
        [_commit(1, 10), _commit(2, 4), _commit(3, 8), _commit(4, 7, by_member=False)]
    )
    told = [(each.what, *each.was, *each.became) for each in history.happenings]
    assert told == [(REWOUND, 10, 4), (WHILE_EMPTY, 8, 7)]


PARTITIONS = {
    "kafka-2.0.1-v1": 10,
    "kafka-3.9.2-classic": 50,
    "kafka-4.3.1-expiry": 20,
    "kafka-upgrade-2.0.1-to-3.9.2": 8,
}
"""How many the offsets topics have of dumps whose removals by brokers are known, of some."""
DUMPS = sorted({each.name.removesuffix(".jsonl.gz") for each in TIMELINES.iterdir()})


@pytest.mark.parametrize("dump", [each for each in DUMPS if each != WITH_TWO_LINES])
def test_what_happened_is_what_the_timeline_says(dump: str) -> None:
    events, count = timeline_of(dump), PARTITIONS.get(dump)
    rows = []
    if count:
        rows = json.loads((REMOVALS / f"removals-{dump}.json").read_text())["offset_tombstones"]
    there = {row["partition"] for row in rows}
    truth, history = read_truth(dump), history_of(acts_in(events), removals_in(rows, events))
    assert truth.ever
    if count is None:
        assert history.lives.keys() == truth.ever
    written, happened = (
        {each for each in found if count is None or home_of(each.key[0], count) in there}
        for found in (truth.happenings, history.happenings)
    )
    assert happened <= written
    # Of what the cleaner took with its tombstone brokers answered in the end that it was gone.
    assert {(each.what, each.is_certain) for each in written - happened} <= {(EXPIRED, False)}


def test_what_nobody_answered_may_have_been_done() -> None:
    history = history_of([_commit(1, 10), _commit(2, 30, is_certain=False), _commit(3, 20)])
    (happening,) = history.happenings
    assert not happening.is_certain
    assert happening.was == {30}
    assert history.possible_at(KEY, 50) == {20, 30}


def test_a_transaction_takes_effect_unless_something_came_after_what_it_holds() -> None:
    staged = Act("staged", (2, 2), 2, KEY[0], {KEY[1:]: 15}, names=("tx",))
    settled = Act("settled", (4, 4), 4, names=("tx", "COMMIT"))
    assert history_of([_commit(1, 10), staged, settled]).lives[KEY].values == {15}
    overtaken = history_of([_commit(1, 10), staged, _commit(3, 11), settled])
    assert overtaken.lives[KEY].values == {11}


def test_groups_are_found_where_kafka_puts_them() -> None:
    # As the brokers' own tool printed it of their logs.
    homes = {"parcel-router": 9, "emergency-router": 5, "eta-predictor": 1, "fleet-telemetry": 6}
    assert {group: home_of(group, 10) for group in homes} == homes


def test_the_failover_took_from_four_of_six_partitions() -> None:
    lost = {
        each.key[2]: (*each.was, *each.became)
        for each in read_truth("kafka-4.3.1-failover").happenings
        if each.key[0] == "parcel-router" and each.what == LOST
    }
    # Of the other two nothing was read before the election: they were at 0, and stayed there.
    assert lost == {0: (200, 195), 2: (180, 0), 3: (180, 5), 5: (200, 195)}


def test_every_dump_has_its_truth() -> None:
    dumps = [path.name.removesuffix(".json.gz") for path in DATA.iterdir()]
    assert len(dumps) == 9
    for dump in dumps:
        truth = read_truth(dump)
        assert truth.end
        assert all(truth.instants.values())
