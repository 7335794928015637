"""The eras of expiry, and which release belongs to which."""

from __future__ import annotations

import pytest

from schemas.expiration_rules import (
    CHECK_INTERVAL,
    RETENTION,
    ExpirationRules,
    default_setting,
    era_of_release,
    expiration_eras,
    rule_names,
)
from schemas.reading import SchemaError

ERA_OF = {
    "0.10.2": "pre-2.1",
    "2.0.1": "pre-2.1",
    "2.1": "2.1-2.3",
    "2.3.1": "2.1-2.3",
    "2.4": "2.4-3.1",
    "3.1.2": "2.4-3.1",
    "3.9.2": "3.2-3.9",
    "4.0": "current",
    "4.3.1": "current",
}


@pytest.mark.parametrize("release", ERA_OF)
def test_a_release_belongs_to_an_era(release: str) -> None:
    assert era_of_release(release).name == ERA_OF[release]


def test_a_release_before_all_eras_is_refused() -> None:
    with pytest.raises(SchemaError, match="no era for release"):
        era_of_release("0.8")


def test_there_are_four_eras_and_the_text_of_the_kip() -> None:
    assert [*expiration_eras()] == [
        "pre-2.1",
        "2.1-2.3",
        "2.4-3.1",
        "3.2-3.9",
        "current",
        "kip-211",
    ]


def test_offsets_were_kept_for_a_day_before_2_0_and_for_a_week_since() -> None:
    kept = {release: default_setting(RETENTION, release) for release in ("1.1", "2.0", "4.3")}
    assert kept == {"1.1": 1440, "2.0": 10080, "4.3": 10080}
    assert default_setting(CHECK_INTERVAL, "0.10.2") == 600_000


@pytest.mark.parametrize("era", expiration_eras().values(), ids=lambda era: era.name)
def test_whatever_a_group_is_its_rule_has_a_name(era: ExpirationRules) -> None:
    named = rule_names()
    assert {*era.counts_from, *era.heeds, era.rule_of_expire_timestamp} <= named.keys()


def test_what_kip_211_says_otherwise_is_what_differs() -> None:
    kip, shipped = (expiration_eras()[name] for name in ("kip-211", "3.2-3.9"))
    assert (kip.expire_timestamp, shipped.expire_timestamp) == ("always", "where_not_kept")
    assert kip.heeds == shipped.heeds
    differing = {
        name for name, base in kip.counts_from.items() if base != shipped.counts_from[name]
    }
    assert differing == {"consumer_group", "streams_group"}
