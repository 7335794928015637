"""What a workspace that was made with a filter cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.decode.selection import Selection
from analytics.gaps.internal_topics import (
    elections_unread,
    filters_of,
    filters_sentence,
    left_out_of,
    loading_unread,
    removals_unread,
)

ALL = Selection()


def manifest(decoded: dict[str, Any], replayed: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"options": decoded, "replay": {"filters": replayed or {}}}


ONE = manifest({"groups": ["billing"]})


def test_a_whole_workspace_leaves_nothing_out() -> None:
    whole = manifest({"groups": [], "exclude_groups": [], "prefer_copy": None})
    assert filters_of(whole) == {}
    assert filters_sentence({}) is None
    assert left_out_of(whole, ALL) == []


@pytest.mark.parametrize("made", [ONE, manifest({}, {"groups": ["billing"]})])
def test_a_filter_is_remembered_of_the_decoding_and_of_the_replay(made: dict[str, Any]) -> None:
    assert filters_of(made) == {"groups": ["billing"]}
    said = filters_sentence(filters_of(made))
    assert said is not None
    assert "--group billing" in said


@pytest.mark.parametrize("asked", [ALL, Selection(("other",)), Selection(("bill*",))])
def test_what_is_asked_beyond_a_filter_cannot_be_told(asked: Selection) -> None:
    (why,) = left_out_of(ONE, asked)
    assert why.code == "other_groups_left_out"
    assert why.words.startswith("groups other than those of --group billing: ")


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        (ONE, Selection(("billing",))),
        (manifest({"groups": ["bill*"]}), Selection(("billing", "bills"))),
        (manifest({"groups": ["bill*"]}), Selection(("bill*",))),
        (manifest({"exclude_groups": ["other"]}), Selection(("billing",))),
        (manifest({"exclude_groups": ["other"]}), Selection((), ("other", "more"))),
        (manifest({"data_topics": ["orders"]}), Selection(("billing",), (), ("orders",))),
        (manifest({"partitions": [9]}), Selection(("billing",))),
    ],
)
def test_what_lies_within_a_filter_is_answered(made: dict[str, Any], asked: Selection) -> None:
    assert left_out_of(made, asked) == []


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (ONE, "--group billing"),
        (manifest({}, {"exclude_groups": ["other"]}), "--exclude-group other"),
    ],
)
def test_records_of_other_groups_that_were_left_out_are_evidence_that_is_missing(
    made: dict[str, Any], options: str
) -> None:
    elections, loading = elections_unread(made), loading_unread(made)
    removals = removals_unread(made)
    assert elections is not None
    assert removals is not None
    assert (elections.code, removals.code) == ("elections_unread", "removals_of_others_unread")
    assert options in elections.words
    assert options in removals.words
    assert loading is not None
    assert options in loading


@pytest.mark.parametrize("made", [manifest({}), manifest({"data_topics": ["orders"]})])
def test_a_workspace_of_all_groups_lacks_no_evidence_of_theirs(made: dict[str, Any]) -> None:
    assert elections_unread(made) is None
    assert removals_unread(made) is None
    assert loading_unread(made) is None


def test_groups_left_out_and_topics_left_out_are_told_each() -> None:
    made = manifest({"exclude_groups": ["other"], "data_topics": ["orders"]})
    groups, topics = left_out_of(made, Selection(("oth*",)))
    assert (groups.code, topics.code) == ("groups_excluded", "other_topics_left_out")
    assert groups.words.startswith("groups of --exclude-group other: ")
    assert topics.words.startswith("topics other than those of --topic orders: ")


@pytest.mark.parametrize("asked", [ALL, Selection(("bill*",)), Selection((), ("other",))])
def test_groups_of_partitions_that_were_not_read_cannot_be_told(asked: Selection) -> None:
    (why,) = left_out_of(manifest({}, {"partitions": [9, 10]}), asked)
    assert why.code == "other_partitions_left_out"
    assert "--partitions 9 --partitions 10" in why.words
