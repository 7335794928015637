"""What limits of share groups are set to: which source goes before which."""

from __future__ import annotations

from typing import Any

import polars as pl

from analytics.questions.share.limits import LimitValue, limit_settings
from analytics.questions.share.settings import ANSWERED, BROKER_CONFIG, DYNAMIC
from analytics.replayed.given_settings import BrokerSettings, GivenSettings, Settings

NAMES = ("resource_type", "resource", "name", "value", "source")
SIZE, OWN = "group.share.max.size", "share.delivery.count.limit"


def configs(*rows: tuple[Any, ...]) -> pl.DataFrame:
    given = [row if len(row) == len(NAMES) else (*row, "metadata_log") for row in rows]
    return pl.DataFrame(given, dict.fromkeys(NAMES, pl.String), orient="row")


def test_a_file_of_ours_goes_before_the_brokers() -> None:
    settings = Settings(
        [BrokerSettings("a", None, {SIZE: "3", "log.dirs": "x"})], GivenSettings({SIZE: "4"})
    )
    assert limit_settings(configs(), settings).brokers == {SIZE: LimitValue("4", BROKER_CONFIG)}
    settings = Settings([BrokerSettings("a", None, {SIZE: "3"})], GivenSettings())
    assert limit_settings(configs(), settings).brokers == {SIZE: LimitValue("3", BROKER_CONFIG)}


def test_groups_have_what_the_metadata_log_says_unless_a_file_does() -> None:
    found = limit_settings(
        configs(
            ("group", "g", OWN, "2"),
            ("group", "h", OWN, "3"),
            ("group", "h", "group.type", "share"),
            ("group", "h", "share.isolation.level", "read_committed"),
            ("group", "i", OWN, None),
            ("broker", "1", SIZE, "9"),
        ),
        Settings([], GivenSettings({}, {"g": {OWN: "5"}})),
    )
    # What the metadata log has of a broker it does not heed: it reads these when it starts.
    assert not found.brokers
    assert found.groups == {
        "g": {OWN: LimitValue("5", BROKER_CONFIG)},
        "h": {OWN: LimitValue("3", DYNAMIC), "group.type": LimitValue("share", DYNAMIC)},
    }


def test_what_the_cluster_answered_counts_where_no_file_says_it() -> None:
    rows = [("broker", node, SIZE, value, ANSWERED) for node, value in (("2", "8"), ("1", "9"))]
    rows.append(("group", "g", OWN, "2", ANSWERED))
    found = limit_settings(configs(*rows), Settings())
    # Of brokers that differ the first.
    assert found.brokers == {SIZE: LimitValue("9", ANSWERED)}
    assert found.groups == {"g": {OWN: LimitValue("2", ANSWERED)}}
    given = Settings([BrokerSettings("a", None, {SIZE: "3"})], GivenSettings())
    assert limit_settings(configs(*rows), given).brokers == {SIZE: LimitValue("3", BROKER_CONFIG)}
