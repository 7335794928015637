"""Offsets of topics that are gone: which are listed, and with which command; worked by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from analytics.contracts import table_of
from analytics.questions.usage.deletions import offset_deletions
from schemas import table

START = datetime(2026, 1, 1, tzinfo=UTC)
BOOTSTRAP = '--bootstrap-server "$BOOTSTRAP_SERVER"'


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def row(name: str, **said: Any) -> dict[str, Any]:
    return {**dict.fromkeys(each.name for each in table(name).columns), **said}


def topic(name: str, created: int, deleted: int | None = None, **more: Any) -> dict[str, Any]:
    said = {"created_at": at(created), "deleted_at": None if deleted is None else at(deleted)}
    return row("topics", **{"topic": name, "source": "metadata_log", **said, **more})


def group(name: str, **more: Any) -> dict[str, Any]:
    said = {"group_id": name, "group_type": "classic", "member_count": 0, "complete": True}
    return row("groups", **{**said, **more})


def offset(group_id: str, name: str, partition: int = 0, **more: Any) -> dict[str, Any]:
    said = {"group_id": group_id, "topic": name, "partition": partition, "complete": True}
    return row("committed_offsets", **{**said, "commit_timestamp": at(1), **more})


TOPICS = [topic("there", 0), topic("old", 0, 5), topic("reborn", 0, 3), topic("reborn", 4)]


def listed(
    offsets: list[dict[str, Any]], groups: list[dict[str, Any]], topics: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    found: pa.Table = offset_deletions(
        table_of("committed_offsets", offsets),
        table_of("groups", groups),
        table_of("topics", topics),
    )
    return [dict(each) for each in found.to_pylist()]


def test_where_other_topics_are_left_only_the_gone_ones_offsets_are_to_be_deleted() -> None:
    offsets = [offset("g", "there"), offset("g", "reborn"), offset("g", "old", 1)]
    (found,) = listed([*offsets, offset("g", "old", 0)], [group("g", member_count=2)], TOPICS)

    assert (found["topic"], found["offsets"], found["topics_left"]) == ("old", 2, 2)
    assert (found["members"], found["topic_deleted_at"]) == (2, at(5))
    # Brokers no longer know which partitions the topic had.
    assert found["command"] == (
        f"kafka-consumer-groups.sh {BOOTSTRAP} --delete-offsets --group g --topic old:0,1"
    )


@pytest.mark.parametrize(("members", "is_whole"), [(0, True), (1, False)])
def test_where_nothing_is_left_the_group_goes_as_a_whole_if_it_has_no_members(
    members: int, *, is_whole: bool
) -> None:
    (found,) = listed([offset("g", "old")], [group("g", member_count=members)], TOPICS)
    assert found["topics_left"] == 0
    assert found["command"].endswith("--delete --group g") is is_whole
    assert ("--delete-offsets" in found["command"]) is not is_whole


def test_a_topic_that_the_log_no_longer_names_is_gone_if_the_log_tells_of_later() -> None:
    (found,) = listed([offset("g", "unknown")], [group("g")], TOPICS)
    assert found["topic_deleted_at"] is None
    # It may have been created since.
    late = offset("g", "unknown", commit_timestamp=at(6))
    assert listed([late], [group("g")], TOPICS) == []
    assert listed([offset("g", "old", commit_timestamp=at(6))], [group("g")], TOPICS) == []


def test_without_a_metadata_log_nothing_is_gone() -> None:
    topics = [topic("there", 0, source="partition_metadata", created_at=None)]
    assert listed([offset("g", "unknown")], [group("g")], topics) == []
    assert listed([offset("g", "unknown")], [group("g")], []) == []


def test_what_a_lost_record_may_have_changed_is_not_listed() -> None:
    assert listed([offset("g", "old", complete=False)], [group("g")], TOPICS) == []
    assert listed([offset("g", "old")], [group("g", complete=False)], TOPICS) == []


def test_each_type_has_its_tool_and_names_are_quoted() -> None:
    offsets = [offset("it's", "old"), offset("it's", "there")]
    (found,) = listed(offsets, [group("it's", group_type="streams")], TOPICS)
    assert found["command"] == (
        f"kafka-streams-groups.sh {BOOTSTRAP} --delete-offsets --group 'it'\"'\"'s' "
        "--input-topic old:0"
    )
