"""What settings that a person gives are worth where a dump tells nothing of elections."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.replay.dump.choices import (
    CLEAN_ELECTIONS,
    ONE_REPLICA,
    UNCLEAN_ELECTIONS_OFF,
    are_elections_clean,
    assumed_of,
)
from analytics.replayed.given_settings import BrokerSettings, GivenSettings, Settings

OFF, ON = ({"unclean.leader.election.enable": each} for each in ("false", "true"))
ONE = {"offsets.topic.replication.factor": "1"}
SAYS_NOTHING = {"log.dirs": "/kafka"}
EVERY = (CLEAN_ELECTIONS, ONE_REPLICA, UNCLEAN_ELECTIONS_OFF)


@pytest.mark.parametrize(
    ("brokers", "everywhere", "evidence"),
    [
        pytest.param([OFF], {}, (UNCLEAN_ELECTIONS_OFF,), id="off"),
        pytest.param([ON], {}, (), id="on"),
        pytest.param([OFF, ON], {}, (), id="brokers differ"),
        pytest.param([OFF, SAYS_NOTHING], {}, (), id="one has its default"),
        pytest.param([OFF, SAYS_NOTHING], OFF, (UNCLEAN_ELECTIONS_OFF,), id="--config, too"),
        pytest.param([OFF], ON, (), id="--config differs"),
        pytest.param([], OFF, (UNCLEAN_ELECTIONS_OFF,), id="--config alone"),
        pytest.param([ONE, ONE], {}, (ONE_REPLICA,), id="one replica"),
        pytest.param([], {}, (), id="nothing given"),
    ],
)
def test_every_broker_has_to_say_it(
    brokers: list[dict[str, str]], everywhere: dict[str, str], evidence: tuple[str, ...]
) -> None:
    files = [BrokerSettings(f"{n}.properties", n, each) for n, each in enumerate(brokers)]
    assert Settings(files, GivenSettings(everywhere)).of_elections() == evidence


def manifest(
    *, topic: str = "__consumer_offsets", is_unclean: bool | None = False, lost: Any = ()
) -> dict[str, Any]:
    election = {"leader_epoch": None} | ({} if is_unclean is None else {"is_unclean": is_unclean})
    row = {"topic": topic, "partition": 0, "copy": "broker-1", "unjudged_elections": [election]}
    return {"partitions": [row], "divergences": list(lost)}


def test_where_nothing_tells_settings_do() -> None:
    assert assumed_of(manifest(), EVERY) == sorted(EVERY)


@pytest.mark.parametrize(
    "dump",
    [
        pytest.param(manifest(is_unclean=True), id="one is known to have been unclean"),
        pytest.param(manifest(is_unclean=None), id="an older workspace does not say"),
        pytest.param(manifest(lost=[{"unclean": True}]), id="a line was lost by one"),
    ],
)
def test_settings_are_not_believed_against_the_dump(dump: dict[str, Any]) -> None:
    assert assumed_of(dump, EVERY) == [CLEAN_ELECTIONS]


def test_the_replicas_of_the_offsets_topic_are_not_those_of_share_state() -> None:
    dump = manifest(topic="__share_group_state")
    assert assumed_of(dump, EVERY) == [CLEAN_ELECTIONS, UNCLEAN_ELECTIONS_OFF]


@pytest.mark.parametrize("name", EVERY)
def test_any_of_them_answers(name: str) -> None:
    assert are_elections_clean([name])
    assert not are_elections_clean(["no-transactions"])
