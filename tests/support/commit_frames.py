"""Commits and markers of decoded rows, as what follows commits takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from analytics.contracts import TIME
from analytics.decode.tables import table_schema
from analytics.replay.history.held_items import MOMENTS, OWNERS
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.commit_rows import commit_rows, marker_rows
from analytics.replay.offsets.effective_commits import ended_commits
from analytics.replay.offsets.offset_history import OfTopics
from tests.support.reference_offset_history import TOPIC, Log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NO_TOPICS = OfTopics(
    pl.DataFrame(schema={"topic": pl.String, "born_at": TIME}),
    pl.DataFrame(schema={"topic": pl.String, "partition": pl.Int32, "elected_at": TIME}),
)
REMOVALS = {
    "coordinator_partition": pl.Int32,
    "record_offset": pl.Int64,
    "cause": pl.String,
    "confidence": pl.String,
}


def decoded_rows(table: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of a decoded table; what a row does not name is null."""
    found = pl.from_arrow(pa.Table.from_pylist(list(rows), table_schema(table)))
    assert isinstance(found, pl.DataFrame)
    return found


def ended_rows(rows: Mapping[str, Iterable[Mapping[str, Any]]], release: str) -> pl.DataFrame:
    """Commits of decoded rows by table, with how their transactions ended."""
    commits = commit_rows(decoded_rows("offset_commit", rows["offset_commit"]))
    markers = marker_rows(decoded_rows("control_markers", rows["control_markers"]))
    return ended_commits(commits, markers, replay_rules(release))


def group_frames(logs: Iterable[Log]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What is known of the group of each log, and of who owned what, snapshot by snapshot."""
    moments: list[dict[str, Any]] = []
    owners: list[dict[str, Any]] = []
    for log in logs:
        members: set[str] = set()
        owned: dict[int, str] = {}
        for row in log.rows["group_metadata"]:
            value, offset = row["value"], row["offset"]
            place = {
                "coordinator_partition": log.number,
                "group_id": log.group,
                "position": offset,
            }
            epoch, now = (None, {}) if value is None else (value["generation"], _owned(value))
            joins = len({*now.values()}) - len(members)
            family = None if value is None else "classic"
            group = {"family": family, "epoch": epoch, "offset": offset}
            moments.append({**place, "group": group, "joins": joins})
            for partition in owned.keys() | now.keys():
                who = now.get(partition)
                owner = {"member_id": who, "epoch": None if who is None else epoch}
                owners.append({**place, "topic": TOPIC, "partition": partition, "owner": owner})
            members, owned = {*now.values()}, now
    return pl.DataFrame(moments, MOMENTS), pl.DataFrame(owners, OWNERS)


def _owned(value: Mapping[str, Any]) -> dict[int, str]:
    return {
        partition: member["member_id"]
        for member in value["members"]
        for assigned in member["assignment_decoded"]["assigned_partitions"]
        for partition in assigned["partitions"]
    }
