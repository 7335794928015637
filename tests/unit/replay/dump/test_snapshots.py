"""What a cluster answered to `snapshot`, as rows of the state tables `configs` and `topics`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import polars as pl
import pytest

from analytics.contracts import check_values, contract_frame, contract_schema
from analytics.replay.dump.coverage import last_snapshot, snapshot_configs, snapshot_topics
from schemas.manifest import Manifest

AT = datetime(2026, 11, 27, 15, tzinfo=UTC)
ID = "gtb2stGYRk-vWZ2zAozmoA"


def manifest(*brokers: dict[str, str] | None, **more: Any) -> Manifest:
    snapshot = {
        "copy": "dump",
        "taken_at": "2026-11-27T15:00:00.000Z",
        "finished_at": "2026-11-27T15:00:01.000Z",
        "read_beyond_ends": False,
        "brokers": [{"node_id": node, "settings": each} for node, each in enumerate(brokers, 1)],
        "topics": [],
        "groups": [],
        **more,
    }
    return cast("Manifest", {"snapshots": [snapshot]})


def settings(found: pl.DataFrame) -> set[tuple[str, str, str, str]]:
    return set(found.select("resource_type", "resource", "name", "value").iter_rows())


def test_what_all_brokers_answer_alike_is_of_all_and_the_rest_of_each() -> None:
    found = snapshot_configs(manifest({"a": "1", "b": "2"}, {"a": "1", "b": "3"}), is_end=True)
    assert settings(found) == {
        ("broker", "", "a", "1"),
        ("broker", "1", "b", "2"),
        ("broker", "2", "b", "3"),
    }
    assert set(found["source"]) == {"snapshot"}
    assert set(found["since"]) == {AT}
    check_values("configs", contract_frame(found, "configs"))


def test_of_a_broker_that_did_not_answer_nothing_is_taken_from_the_others() -> None:
    found = snapshot_configs(manifest({"a": "1"}, None), is_end=True)
    assert settings(found) == {("broker", "1", "a", "1")}


def test_topics_and_groups_have_their_own() -> None:
    topics = [{"topic": "t", "topic_id": ID, "partitions": [], "settings": {"retention.ms": "5"}}]
    topics += [{"topic": "u", "topic_id": None, "partitions": [], "settings": None}]
    groups = [{"group_id": "g", "settings": {"share.isolation.level": "read_committed"}}]
    found = snapshot_configs(manifest(topics=topics, groups=groups), is_end=True)
    assert settings(found) == {
        ("topic", "t", "retention.ms", "5"),
        ("group", "g", "share.isolation.level", "read_committed"),
    }


def test_before_the_end_no_setting_is_known() -> None:
    found = snapshot_configs(manifest({"a": "1"}), is_end=False)
    assert found.height == 0
    assert found.schema == contract_schema("configs")


@pytest.mark.parametrize(("is_end", "partitions"), [(True, 2), (False, None)])
def test_a_topic_has_its_id_and_at_the_end_its_partitions(
    is_end: bool, partitions: int | None
) -> None:
    edges = [[0, 1, 0, 9, 9], [1, 1, 0, 9, 9]]
    topics = [{"topic": "t", "topic_id": ID, "partitions": edges, "settings": None}]
    found = snapshot_topics(manifest(topics=topics), is_end=is_end)
    assert found.rows() == [("t", ID, partitions, "snapshot")]


def test_of_several_snapshots_the_last_counts() -> None:
    early, late = (manifest({"a": each})["snapshots"][0] for each in ("1", "2"))
    late["taken_at"] = "2026-11-27T17:00:00.000+01:00"
    both = cast("Manifest", {"snapshots": [late, early]})
    assert last_snapshot(both) == late
    assert last_snapshot(cast("Manifest", {})) is None
    assert snapshot_topics(cast("Manifest", {}), is_end=True).height == 0
