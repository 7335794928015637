"""Settings of a broker by release: what it can do is on, and a cut stays as it was loaded."""

from __future__ import annotations

import pytest

from tests.brokers.programs import ACTS
from tests.brokers.releases import Release, broker_settings, loading_settings

RELEASES = ("3.7.2", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")


@pytest.mark.parametrize(
    ("number", "protocols"),
    [
        ("3.9.2", "classic"),
        ("4.0.2", "classic,consumer,share"),
        ("4.1.2", "classic,consumer,share,streams"),
        ("4.4.0", "classic,consumer,share,streams"),
    ],
)
def test_every_kind_of_group_that_a_release_has_is_on(number: str, protocols: str) -> None:
    settings = broker_settings(Release(number), seed=1)
    assert settings["group.coordinator.rebalance.protocols"] == protocols
    assert ("share.coordinator.state.topic.num.partitions" in settings) == ("share" in protocols)


def test_previews_are_switched_on_only_where_they_are_previews() -> None:
    unstable = "unstable.api.versions.enable"
    on = {n for n in RELEASES if broker_settings(Release(n), 1).get(unstable) == "true"}
    assert on == {"4.0.2", "4.1.2"}
    assert [n for n in RELEASES if Release(n).features] == ["4.1.2"]


def test_segments_are_printed_by_tools_that_are_published_and_say_enough() -> None:
    tools = {number: Release(number).tools.number for number in RELEASES}
    assert {n: t for n, t in tools.items() if n != t} == {"3.7.2": "4.3.1", "4.4.0": "4.3.1"}


def test_seeds_differ_in_what_they_ask_of_the_broker_and_repeat_themselves() -> None:
    release = Release("4.4.0")
    drawn = [broker_settings(release, seed) for seed in range(20)]
    assert drawn == [broker_settings(release, seed) for seed in range(20)]
    for name in ("offsets.retention.minutes", "log.roll.ms", "metadata.log.segment.ms"):
        assert {name in settings for settings in drawn} == {True, False}


@pytest.mark.parametrize("number", RELEASES)
def test_a_broker_that_loads_a_cut_lets_nothing_end(number: str) -> None:
    live = broker_settings(Release(number), seed=2)
    calm = loading_settings(live)
    assert calm["log.cleaner.enable"] == "false"
    assert int(calm["offsets.retention.minutes"]) > 10_000
    sessions = [name for name in live if name.endswith(".session.timeout.ms")]
    for name in sessions:
        if name.count(".min.") == 0:
            assert int(calm[name]) > 3_600_000
    groups = {name.split(".")[1] for name in calm if ".max.session." in name}
    assert groups == {
        name.split(".")[1] for name in live if name.startswith("group.") and "heartbeat" in name
    }


@pytest.mark.parametrize("number", RELEASES)
def test_every_act_is_written(number: str) -> None:
    acts = Release(number).acts
    assert [each for each in acts if not (ACTS / f"{each}.java").exists()] == []
    assert ("ShareMembers" in acts) == (Release(number).line >= (4, 0))
