"""Settings that a cluster answers to DescribeConfigs: brokers', topics' own, groups' own.

A broker is asked itself: what its file sets, others do not know. Of topics and groups only what is
set for them is kept: all else they have from their broker, and an answer has the defaults of
whichever broker was asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import msgspec

from analytics.snapshot.cluster_connection import (
    ClusterConnection,
    NotAnsweredError,
    error_name,
)
from schemas.names import harmless_settings, sensitive_settings
from schemas.snapshot import Broker, ListedGroup, Setting, Topic, Unread

TOPIC, BROKER, GROUP = "topic", "broker", "group"
_TYPES: Final = {TOPIC: 2, BROKER: 4, GROUP: 32}
"""By ``ConfigResource.Type``."""
_SOURCES: Final = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
_UNKNOWN: Final = "UNKNOWN"
_OWN: Final = {TOPIC: ("DYNAMIC_TOPIC_CONFIG",), GROUP: ("DYNAMIC_GROUP_CONFIG",)}
"""Sources of what is set for a resource itself; of brokers all count."""
_AT_ONCE: Final = 500
"""Resources in one request."""
_NAMES_ANY_TYPE: Final = 1
"""Of ListConfigResources; version 0 has clients' metrics only."""
_NO_SUCH_TYPE: Final = "INVALID_REQUEST"
"""What brokers say of groups before groups had settings (``ConfigHelper.describeConfigs``)."""
_NO_ANSWER: Final = "no answer"


@dataclass(frozen=True)
class DescribedConfigs:
    """Settings of resources of one type, by name, and Kafka's name of why others have none."""

    settings: Mapping[str, list[Setting]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def unread(self, of: str, words: str) -> list[Unread]:
        """Return what was not answered; where all fails for one reason, all of it once.

        Args:
            of: What one of them is called ("topic").
            words: What all of them are ("topics").
        """
        reasons = set(self.errors.values())
        if len(reasons) == 1 and not self.settings and len(self.errors) > 1:
            return [Unread(what=f"settings of {words}", reason=next(iter(reasons)))]
        return [
            Unread(what=f"settings of {of} {name}", reason=why) for name, why in self.errors.items()
        ]


def brokers_with_configs(
    cluster: ClusterConnection, brokers: Iterable[Broker]
) -> tuple[list[Broker], list[Unread]]:
    """Return brokers with what each goes by, and what was not answered."""
    settings: dict[str, list[Setting]] = {}
    errors: dict[str, str] = {}
    found = list(brokers)
    for each in found:
        one = described_configs(cluster, BROKER, [str(each.node_id)], each.node_id)
        settings |= one.settings
        errors |= one.errors
    described = DescribedConfigs(settings, errors)
    answered = [
        msgspec.structs.replace(each, configs=settings.get(str(each.node_id))) for each in found
    ]
    return answered, described.unread(BROKER, "brokers")


def topics_with_configs(
    cluster: ClusterConnection, topics: Mapping[str, Topic]
) -> tuple[dict[str, Topic], list[Unread]]:
    """Return topics by name with their own settings, and what was not answered."""
    described = described_configs(cluster, TOPIC, list(topics))
    answered = {
        name: msgspec.structs.replace(each, configs=described.settings.get(name))
        for name, each in topics.items()
    }
    return answered, described.unread(TOPIC, "topics")


def groups_with_configs(
    cluster: ClusterConnection, groups: Sequence[ListedGroup]
) -> tuple[list[ListedGroup], list[Unread]]:
    """Return groups with their own settings, and what was not answered.

    Where it is told which groups have settings of their own, only they are asked for: an answer has
    the defaults of each, which is much for many groups. Releases in which groups have no settings
    refuse to be asked: nothing is lacking then.
    """
    names = sorted({each.group_id for each in groups})
    having = _groups_having_configs(cluster)
    asked = names if having is None else [each for each in names if each in having]
    described = described_configs(cluster, GROUP, asked)
    settings = {**dict.fromkeys(set(names).difference(asked), ()), **described.settings}
    answered = [
        msgspec.structs.replace(
            each, configs=None if (own := settings.get(each.group_id)) is None else list(own)
        )
        for each in groups
    ]
    if set(described.errors.values()) == {_NO_SUCH_TYPE} and not described.settings:
        return answered, []
    return answered, described.unread(GROUP, "groups")


def _groups_having_configs(cluster: ClusterConnection) -> frozenset[str] | None:
    """Return the groups that have settings of their own; null where that is not told.

    Brokers before 4.1 do not (KIP-1142), nor does one that refuses it to the user.
    """
    from kafka.protocol.admin import ListConfigResourcesRequest  # noqa: PLC0415 - optional

    request = ListConfigResourcesRequest(
        resource_types=[_TYPES[GROUP]], min_version=_NAMES_ANY_TYPE
    )
    try:
        response = cluster.ask(request)
    except NotAnsweredError:
        return None
    resources = response.config_resources
    if response.error_code or resources is None:
        return None
    if any(each.resource_type != _TYPES[GROUP] for each in resources):
        return None
    return frozenset(each.resource_name for each in resources)


def described_configs(
    cluster: ClusterConnection, of: str, names: Sequence[str], node: int | None = None
) -> DescribedConfigs:
    """Ask a broker for the settings of resources.

    Args:
        cluster: Who is asked.
        of: `TOPIC`, `BROKER` or `GROUP`.
        names: Of the resources.
        node: The broker; None is any.
    """
    settings: dict[str, list[Setting]] = {}
    errors = dict.fromkeys(names, _NO_ANSWER)
    for first in range(0, len(names), _AT_ONCE):
        try:
            response = cluster.ask(_request(of, names[first : first + _AT_ONCE]), node)
        except NotAnsweredError as error:
            errors |= dict.fromkeys(names[first:], str(error))
            break
        for each in response.results:
            name = each.resource_name
            if each.error_code:
                errors |= {name: error_name(each.error_code)} if name in errors else {}
            elif errors.pop(name, None) is not None:
                settings[name] = sorted(_storable(of, each.configs), key=lambda one: one.name)
    return DescribedConfigs(settings, errors)


def _request(of: str, names: Sequence[str]) -> Any:  # noqa: ANN401 - untyped library
    from kafka.protocol.admin import DescribeConfigsRequest  # noqa: PLC0415 - optional

    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=_TYPES[of], resource_name=each, configuration_keys=None)
            for each in names
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def _storable(of: str, configs: Iterable[Any]) -> Iterator[Setting]:
    """Yield the settings that may be kept and count."""
    own = _OWN.get(of)
    is_harmless, is_sensitive = _patterns(of)
    for each in configs:
        source = _SOURCES.get(each.config_source, _UNKNOWN)
        if (own is not None and source not in own) or each.is_sensitive or each.value is None:
            continue
        if is_harmless.match(each.name) and not is_sensitive.search(each.name):
            yield Setting(name=each.name, value=each.value, source=source)


@cache
def _patterns(of: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what harmless and what sensitive settings are called."""
    return re.compile(harmless_settings(of)), re.compile(sensitive_settings())
