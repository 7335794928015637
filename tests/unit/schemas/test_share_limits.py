"""KIP-932, "Configuration", "Group configuration": limits, defaults, bounds; and what shipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.names import BROKER, GROUP, is_setting
from schemas.share_rules import Bounds, default_share_setting, share_limits, share_settings

CASES = Path(__file__).parents[2] / "cases"
PRINTED = json.loads((CASES / "share_limits/kafka-config-defs.json").read_text(encoding="utf-8"))[
    "releases"
]
TEXT = {
    # As the text's table has them; where it gives no least or most there is none.
    "group.share.delivery.count.limit": (5, 2, 10),
    "group.share.record.lock.duration.ms": (30000, 1000, 60000),
    "group.share.record.lock.duration.max.ms": (60000, 1000, 3600000),
    "group.share.record.lock.partition.limit": (200, 100, 10000),
    "group.share.session.timeout.ms": (45000, None, None),
    "group.share.min.session.timeout.ms": (45000, None, None),
    "group.share.max.session.timeout.ms": (60000, None, None),
    "group.share.heartbeat.interval.ms": (5000, None, None),
    "group.share.min.heartbeat.interval.ms": (5000, None, None),
    "group.share.max.heartbeat.interval.ms": (15000, None, None),
    "group.share.max.groups": (10, 1, 100),
    "group.share.max.size": (200, 10, 1000),
    "group.share.state.topic.num.partitions": (50, None, None),
    "group.share.state.topic.replication.factor": (3, None, None),
    "group.share.state.topic.segment.bytes": (104857600, None, None),
    "group.share.state.topic.min.isr": (2, None, None),
    "share.coordinator.threads": (1, 1, None),
}


def _numbers(bounds: Bounds) -> tuple[int, int | None, int | None]:
    return bounds.default, bounds.least, bounds.most


def test_the_texts_limits_are_known_by_its_names() -> None:
    known = {each.kip.name: _numbers(each.kip) for each in share_limits().values() if each.kip}
    assert known == TEXT


@pytest.mark.parametrize("release", PRINTED)
def test_defaults_and_bounds_are_what_the_released_classes_print(release: str) -> None:
    for name, limit in share_limits().items():
        printed = PRINTED[release].get(name)
        bounds = limit.in_release(release)
        assert (bounds and _numbers(bounds)) == (tuple(printed) if printed else None), name
        if (own := limit.of_group) is not None:
            has_own = own.name in PRINTED[release]
            assert has_own == (float(release) >= float(own.since)), own


def test_what_the_backlog_goes_by_has_the_same_defaults() -> None:
    for name, own in share_settings().items():
        limit = share_limits()[name]
        assert limit.of_group
        assert limit.of_group.name == own
        for release in PRINTED:
            bounds = limit.in_release(release)
            assert bounds is not None
            assert bounds.default == default_share_setting(name, release)


def test_every_limit_is_a_setting_that_files_may_have() -> None:
    for name, limit in share_limits().items():
        assert is_setting(name, BROKER)
        assert limit.of_group is None or is_setting(limit.of_group.name, GROUP)
        assert set(limit.between or ()) <= share_limits().keys()
