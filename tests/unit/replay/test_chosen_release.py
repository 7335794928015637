"""A question to a workspace goes by the release that was named for its replay."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.replay.log.rules import (
    FROM_RECORDS,
    NAMED,
    NAMED_BEFORE,
    NEWEST,
    NOTHING,
    ChosenRelease,
    chosen_release,
    named_release,
)


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


def workspace(release: str, *, is_named: bool) -> dict[str, Any]:
    replay = {"kafka_version": release, "kafka_version_is_named": is_named}
    return {"kafka_version": {"at_least": "4.1"}, "replay": replay}


SHOWS_NOTHING: dict[str, Any] = {"kafka_version": {"at_least": None}}


@pytest.mark.parametrize(
    ("named", "given", "dump", "chosen"),
    [
        pytest.param("3.9", None, workspace("4.1", is_named=False), ("3.9", NAMED), id="now"),
        pytest.param(
            "3.9",
            workspace("4.0", is_named=True),
            workspace("4.0", is_named=True),
            ("3.9", NAMED),
            id="now, before what was named earlier",
        ),
        pytest.param(
            None,
            workspace("4.0", is_named=True),
            workspace("4.0", is_named=True),
            ("4.0", NAMED_BEFORE),
            id="earlier",
        ),
        pytest.param(
            None, None, workspace("4.0", is_named=True), ("4.1", FROM_RECORDS), id="asked as a dump"
        ),
        pytest.param(None, None, SHOWS_NOTHING, (NEWEST, NOTHING), id="nothing"),
    ],
)
def test_what_a_person_names_goes_before_what_a_dump_shows(
    named: str | None, given: Any, dump: dict[str, Any], chosen: tuple[str, str]
) -> None:
    assert chosen_release(named, given, dump) == ChosenRelease(*chosen)


@pytest.mark.parametrize(
    ("chosen", "is_named", "is_ready"),
    [
        (ChosenRelease("4.1", NAMED), True, True),
        (ChosenRelease("4.1", NAMED), False, True),
        (ChosenRelease("4.0", NAMED_BEFORE), True, False),
        (ChosenRelease("4.1", FROM_RECORDS), True, False),
        (ChosenRelease("4.1", FROM_RECORDS), False, True),
        (ChosenRelease(NEWEST, NOTHING), False, True),
    ],
)
def test_a_workspace_is_ready_for_the_release_that_it_was_replayed_by(
    chosen: ChosenRelease, *, is_named: bool, is_ready: bool
) -> None:
    assert chosen.is_of(workspace("4.1", is_named=is_named)) is is_ready
