"""A question to a workspace goes by the release that was named for its replay."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.replay.dump.chosen_release import named_release
from analytics.replay.log.rules import NEWEST


@pytest.mark.parametrize(
    ("shown", "replayed", "named"),
    [
        ("4.1", "4.1", None),
        ("4.1", "4.1.1", "4.1.1"),
        (None, NEWEST, None),
        (None, "3.2.3", "3.2.3"),
    ],
)
def test_a_release_that_nothing_shows_was_named(
    shown: str | None, replayed: str, named: str | None
) -> None:
    manifest: dict[str, Any] = {
        "kafka_version": {"at_least": shown},
        "replay": {"kafka_version": replayed},
    }
    assert named_release(manifest) == named


@pytest.mark.parametrize(("is_named", "named"), [(True, "4.1"), (False, None)])
def test_the_release_that_a_dump_shows_may_be_named_too(is_named: bool, named: str | None) -> None:
    manifest: dict[str, Any] = {
        "kafka_version": {"at_least": "4.1"},
        "replay": {"kafka_version": "4.1", "kafka_version_is_named": is_named},
    }
    assert named_release(manifest) == named


def test_a_workspace_that_was_only_decoded_names_none() -> None:
    assert named_release({"kafka_version": {"at_least": "4.1"}}) is None
