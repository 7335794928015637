"""Which of the settings that brokers answer are kept, and what is said of those not answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from analytics.snapshot import cluster_settings
from analytics.snapshot.cluster_connection import NotAnsweredError
from analytics.snapshot.cluster_settings import (
    BROKER,
    GROUP,
    TOPIC,
    brokers_with_configs,
    described_configs,
    groups_with_configs,
    topics_with_configs,
)
from schemas.snapshot import Broker, ListedGroup, Setting, Topic, Unread

OF_TOPIC, STATIC, DEFAULT, OF_GROUP = 1, 4, 5, 8
REFUSED, NO_SUCH_TYPE, CLUSTER_REFUSED = 29, 42, 31
GROUP_TYPE, TOPIC_TYPE = 32, 2


def entry(name: str, value: str | None, source: int, *, is_sensitive: bool = False) -> Any:
    return SimpleNamespace(
        name=name, value=value, config_source=source, is_sensitive=is_sensitive, read_only=False
    )


TOO_OLD = NotAnsweredError("IncompatibleBrokerVersion: no version 1", is_passing=False)


class Cluster:
    """Answers by resource: entries, an error code, or nothing at all; notes who was asked.

    Which groups have settings of their own it tells in `listed`: names with the number of a type,
    an error code, or why there is no answer.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[list[str], int | None]] = []
        self.listed: list[tuple[str, int]] | int | NotAnsweredError = TOO_OLD

    def ask(self, request: Any, node: int | None = None) -> Any:
        if type(request).__name__ == "ListConfigResourcesRequest":
            return self._listed(request)
        names = [each.resource_name for each in request.resources]
        self.asked.append((names, node))
        if "silence" in self.answers:
            raise NotAnsweredError("no broker answered", is_passing=True)
        return SimpleNamespace(results=[self._result(name) for name in names])

    def _listed(self, request: Any) -> Any:
        assert request.resource_types == [GROUP_TYPE]
        if isinstance(self.listed, NotAnsweredError):
            raise self.listed
        code = self.listed if isinstance(self.listed, int) else 0
        listed = [] if isinstance(self.listed, int) else self.listed
        resources = [SimpleNamespace(resource_name=n, resource_type=kind) for n, kind in listed]
        return SimpleNamespace(error_code=code, config_resources=resources)

    def _result(self, name: str) -> Any:
        answer = self.answers.get(f"n{name}", self.answers.get(name, []))
        code = answer if isinstance(answer, int) else 0
        configs = [] if isinstance(answer, int) else answer
        return SimpleNamespace(resource_name=name, error_code=code, configs=configs)


def cluster_of(**answers: Any) -> Any:
    return Cluster(**answers)


def topic(name: str) -> Topic:
    return Topic(topic=name, topic_id=None, is_internal=False, partitions=[], configs=None)


def group(name: str) -> ListedGroup:
    return ListedGroup(name, 1, "consumer", None, None, None)


def broker(node: int) -> Broker:
    return Broker(node_id=node, host="h", port=1, rack=None, configs=None)


def test_of_topics_only_what_is_set_for_them_is_kept() -> None:
    own, inherited = entry("retention.ms", "5", OF_TOPIC), entry("segment.bytes", "9", STATIC)
    found = described_configs(cluster_of(t=[inherited, own]), TOPIC, ["t"])
    assert found.settings == {"t": [Setting("retention.ms", "5", "DYNAMIC_TOPIC_CONFIG")]}


def test_of_brokers_all_that_they_go_by_is_kept_in_order() -> None:
    entries = [
        entry("offsets.retention.minutes", "10080", DEFAULT),
        entry("log.retention.hours", "24", STATIC),
        entry("log.retention.ms", None, DEFAULT),
    ]
    found = described_configs(cluster_of(n7=entries), BROKER, ["7"], 7)
    assert found.settings["7"] == [
        Setting("log.retention.hours", "24", "STATIC_BROKER_CONFIG"),
        Setting("offsets.retention.minutes", "10080", "DEFAULT_CONFIG"),
    ]


@pytest.mark.parametrize(
    "secret",
    [
        entry("ssl.keystore.password", "hunter2", STATIC),
        entry("offsets.retention.minutes", "hunter2", STATIC, is_sensitive=True),
        entry("remote.log.storage.manager.impl.prefix.secret.key", "hunter2", STATIC),
        entry("transaction.my.token", "hunter2", STATIC),
        entry("advertised.listeners", "PLAINTEXT://hunter2:9092", STATIC),
    ],
)
def test_what_may_be_a_secret_is_not_kept(secret: Any) -> None:
    found = described_configs(cluster_of(n1=[secret]), BROKER, ["1"])
    assert found.settings == {"1": []}


def test_each_broker_is_asked_itself() -> None:
    cluster = cluster_of(n1=[entry("num.partitions", "3", STATIC)], n2=REFUSED)
    brokers, unread = brokers_with_configs(cluster, [broker(1), broker(2)])
    assert cluster.asked == [(["1"], 1), (["2"], 2)]
    assert [each.configs for each in brokers] == [
        [Setting("num.partitions", "3", "STATIC_BROKER_CONFIG")],
        None,
    ]
    assert unread == [Unread("settings of broker 2", "TOPIC_AUTHORIZATION_FAILED")]


def test_many_are_asked_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_settings, "_AT_ONCE", 2)
    cluster = cluster_of()
    found = described_configs(cluster, TOPIC, ["a", "b", "c"])
    assert [names for names, _ in cluster.asked] == [["a", "b"], ["c"]]
    assert found.settings == {"a": [], "b": [], "c": []}
    assert not found.errors


def test_what_is_refused_alike_is_said_once() -> None:
    topics = {name: topic(name) for name in ("a", "b")}
    found, unread = topics_with_configs(cluster_of(a=REFUSED, b=REFUSED), topics)
    assert [each.configs for each in found.values()] == [None, None]
    assert unread == [Unread("settings of topics", "TOPIC_AUTHORIZATION_FAILED")]
    _, unread = topics_with_configs(cluster_of(a=REFUSED), topics)
    assert unread == [Unread("settings of topic a", "TOPIC_AUTHORIZATION_FAILED")]


def test_who_does_not_answer_is_not_asked_again_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_settings, "_AT_ONCE", 1)
    cluster = cluster_of(silence=True)
    _, unread = topics_with_configs(cluster, {name: topic(name) for name in ("a", "b")})
    assert len(cluster.asked) == 1
    assert unread == [Unread("settings of topics", "no broker answered")]


def test_groups_have_settings_of_their_own_where_the_release_has_such() -> None:
    own = entry("share.delivery.count.limit", "3", OF_GROUP)
    inherited = entry("share.session.timeout.ms", "9", DEFAULT)
    cluster = cluster_of(g=[own, inherited])
    found, unread = groups_with_configs(cluster, [group("g"), group("h")])
    assert [each.configs for each in found] == [
        [Setting("share.delivery.count.limit", "3", "DYNAMIC_GROUP_CONFIG")],
        [],
    ]
    assert unread == []


def test_only_groups_that_have_settings_of_their_own_are_asked_for() -> None:
    own = entry("share.delivery.count.limit", "3", OF_GROUP)
    cluster = cluster_of(g=[own])
    cluster.listed = [("g", GROUP_TYPE), ("without commits", GROUP_TYPE)]
    found, unread = groups_with_configs(cluster, [group("f"), group("g"), group("h")])
    assert cluster.asked == [(["g"], None)]
    assert [each.configs for each in found] == [
        [],
        [Setting("share.delivery.count.limit", "3", "DYNAMIC_GROUP_CONFIG")],
        [],
    ]
    assert unread == []


def test_no_group_is_asked_for_where_none_has_settings_of_its_own() -> None:
    cluster = cluster_of()
    cluster.listed = []
    found, unread = groups_with_configs(cluster, [group("g")])
    assert (cluster.asked, [each.configs for each in found], unread) == ([], [[]], [])


def test_settings_of_a_listed_group_that_may_not_be_described_are_named() -> None:
    cluster = cluster_of(g=30)
    cluster.listed = [("g", GROUP_TYPE)]
    found, unread = groups_with_configs(cluster, [group("g"), group("h")])
    assert [each.configs for each in found] == [None, []]
    assert unread == [Unread("settings of group g", "GROUP_AUTHORIZATION_FAILED")]


@pytest.mark.parametrize("listed", [TOO_OLD, CLUSTER_REFUSED, [("g", TOPIC_TYPE)]])
def test_all_groups_are_asked_for_where_nobody_tells_which_have_settings(listed: Any) -> None:
    cluster = cluster_of()
    cluster.listed = listed
    found, _ = groups_with_configs(cluster, [group("g"), group("h")])
    assert cluster.asked == [(["g", "h"], None)]
    assert [each.configs for each in found] == [[], []]


def test_a_release_without_settings_of_groups_lacks_nothing() -> None:
    cluster = cluster_of(g=NO_SUCH_TYPE, h=NO_SUCH_TYPE)
    found, unread = groups_with_configs(cluster, [group("g"), group("h")])
    assert [each.configs for each in found] == [None, None]
    assert unread == []
    _, unread = groups_with_configs(cluster_of(g=30), [group("g")])
    assert unread == [Unread("settings of group g", "GROUP_AUTHORIZATION_FAILED")]


def test_an_answer_to_another_question_counts_for_nothing() -> None:
    class Other(Cluster):
        def ask(self, request: Any, node: int | None = None) -> Any:
            answer = super().ask(request, node)
            for each in answer.results:
                each.resource_name += "2"
            return answer

    other: Any = Other()
    found = described_configs(other, GROUP, ["g"])
    assert (found.settings, found.errors) == ({}, {"g": "no answer"})
