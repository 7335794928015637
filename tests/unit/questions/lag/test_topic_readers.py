"""Who reads a topic, by everything that groups of every kind leave behind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa

from analytics.questions.lag.offsets import GroupTables, inputs_of
from analytics.questions.lag.sums import topic_readers, unread_topics, with_readers
from tests.support.contract_rows import rows_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TEXT, TIME = pa.string(), pa.timestamp("us", "UTC")


def rows(schema: dict[str, pa.DataType], *values: tuple[Any, ...]) -> pl.DataFrame:
    told = [dict(zip(schema, each, strict=True)) for each in values]
    return pl.DataFrame(pa.Table.from_pylist(told, pa.schema(list(schema.items()))))


TABLES = GroupTables(
    groups=rows(
        {"group_id": TEXT, "group_type": TEXT},
        *(("classic", "classic"), ("new", "consumer"), ("sharing", "share")),
        *(("flow", "streams"), ("plain", "simple")),
    ),
    members=rows(
        {"group_id": TEXT, "subscribed_topics": pa.list_(TEXT)},
        ("classic", ["orders", "awaited"]),
        ("new", None),
        ("sharing", ["jobs"]),
    ),
    assignments=rows(
        {"group_id": TEXT, "topic": TEXT, "kind": TEXT},
        *(("classic", "orders", "current"), ("new", "matched", "current")),
        ("new", "promised", "target"),
    ),
    committed=pl.DataFrame(),
    inputs=inputs_of({"flow": {"0": ["words", "repartitioned"]}}),
)
TOPICS = rows(
    {"topic": TEXT, "deleted_at": TIME},
    *((each, None) for each in ("orders", "quiet", "jobs", "__consumer_offsets")),
    ("gone", NOON),
)
_LAG_NAMES = ("topic", "group_id", "kind", "owners", "last_commit_at")
LAG = rows_of(
    "lag",
    [
        dict(zip(_LAG_NAMES, each, strict=True))
        for each in (
            ("orders", "classic", "assigned", [{"member_id": "m"}], NOON),
            ("orders", "plain", "unassigned", None, NOON),
            ("old", "classic", "stale", None, None),
            ("awaited", "classic", "never_committed", None, None),
            ("words", "flow", "assigned", [{"member_id": "s"}], None),
        )
    ],
)
SHARES = rows({"group_id": TEXT, "topic": TEXT}, ("sharing", "jobs"), ("sharing", "shared"))


def test_the_surest_sign_of_each_reader_is_told() -> None:
    found = topic_readers(LAG, TABLES, SHARES).to_dicts()

    assert {(each["topic"], each["group_id"]): each["how"] for each in found} == {
        ("awaited", "classic"): "subscribes",
        ("jobs", "sharing"): "subscribes",
        ("matched", "new"): "owns",
        ("old", "classic"): "left",
        ("orders", "classic"): "owns",
        ("orders", "plain"): "committed",
        ("repartitioned", "flow"): "subscribes",
        ("shared", "sharing"): "shares",
        ("words", "flow"): "owns",
    }
    types = {each["group_id"]: each["group_type"] for each in found}
    assert types["sharing"] == "share"
    assert [each["last_commit_at"] for each in found if each["topic"] == "orders"] == [NOON, NOON]


def test_topics_that_nobody_reads_are_those_that_are_there_and_not_internal() -> None:
    assert unread_topics(TOPICS, topic_readers(LAG, TABLES, SHARES)) == ["quiet"]


def test_sums_by_topic_name_who_reads_now_and_who_did() -> None:
    sums = pl.DataFrame({"topic": ["orders"], "groups": [2], "lag": [7]})
    readers = topic_readers(LAG, TABLES, SHARES)
    found = with_readers(sums, readers, ["quiet"], is_whole=True).to_dicts()

    of_topic = {each["topic"]: each for each in found}
    orders, quiet = of_topic["orders"], of_topic["quiet"]
    assert (orders["readers"], orders["once_readers"]) == (["classic"], ["plain"])
    assert (quiet["readers"], quiet["groups"], quiet["lag"]) == ([], 0, None)
    assert of_topic["jobs"]["readers"] == ["sharing"]
    assert with_readers(sums, readers, ["quiet"], is_whole=False).height == 1
