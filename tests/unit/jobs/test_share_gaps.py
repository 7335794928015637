"""What is said of a partition of share state rests on all groups that have state in it."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.questions.share.state_topic import gaps_of_all_groups

STATE, OFFSETS = "__share_group_state", "__consumer_offsets"
PARTITIONS = [
    {"topic": STATE, "partition": 0},
    {"topic": STATE, "partition": 2},
    {"topic": OFFSETS, "partition": 5},
]


def made_with(**filters: list[str]) -> dict[str, Any]:
    return {"partitions": PARTITIONS, "options": filters}


@pytest.mark.parametrize("manifest", [made_with(), made_with(data_topics=["orders"])])
def test_a_workspace_of_all_groups_lacks_what_the_dump_lacks(manifest: dict[str, Any]) -> None:
    assert gaps_of_all_groups(manifest, {}) == {}
    assert gaps_of_all_groups(manifest, {2: "a segment"}) == {2: "a segment"}


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"groups": ["pickers"]}, "--group pickers"),
        ({"exclude_groups": ["idle"]}, "--exclude-group idle"),
    ],
)
def test_one_of_some_groups_lacks_the_others_of_each_partition(
    filters: dict[str, list[str]], words: str
) -> None:
    found = gaps_of_all_groups(made_with(**filters), {2: "a segment"})
    assert found.keys() == {0, 2}
    assert words in found[0]
    assert found[2] == "a segment"
    # The same where the filter was given to the replay.
    replayed = {"partitions": PARTITIONS, "options": {}, "replay": {"filters": filters}}
    assert gaps_of_all_groups(replayed, {2: "a segment"}) == found
