"""Groups that Kafka's tools cannot describe: a saved output that lacks them differs in nothing."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from reports.describe.against import EMPTY_ID, NUL, refused_by_kafka
from reports.describe.tool_output import CONSUMER, MEMBERS, OFFSETS, STATE, View
from tests.unit.reports.test_describe_rows import (
    ASSIGNED,
    GROUPS,
    MEMBER,
    SOURCE,
    group,
    member,
    owns,
    table,
)

NAMES = ("", "nul\0byte", "short", "connect", "gone", "sound")
ODD = replace(
    SOURCE,
    groups=table(GROUPS, *(group(name, "classic") for name in NAMES)),
    members=table(
        MEMBER,
        member("short", "m", assignment_fields_written=1),
        member("connect", "m", unread="not a consumer group"),
        member("gone", "m"),
        member("sound", "m"),
    ),
    assignments=table(ASSIGNED, owns("gone", "m", "no-topic", 0), owns("sound", "m", "orders", 0)),
)


@pytest.mark.parametrize("what", [OFFSETS, MEMBERS, STATE])
def test_what_the_tool_cannot_read_or_be_asked_for(what: str) -> None:
    found = refused_by_kafka(View(CONSUMER, what), ODD)
    assert set(found) == {"", "nul\0byte", "short", "connect"}
    assert (found[""], found["nul\0byte"]) == (EMPTY_ID, NUL)


def test_offsets_of_a_topic_that_does_not_exist_make_the_tool_fail() -> None:
    offsets = View(CONSUMER, OFFSETS)
    assert "no-topic" in refused_by_kafka(offsets, ODD, {"orders"})["gone"]
    assert "sound" not in refused_by_kafka(offsets, ODD, {"orders"})
    assert "gone" not in refused_by_kafka(View(CONSUMER, MEMBERS), ODD, {"orders"})


def test_a_source_without_members_refuses_nothing() -> None:
    nobody = pa.Table.from_pylist([], SOURCE.members.schema)
    none = replace(SOURCE, groups=SOURCE.groups.slice(0, 0), members=nobody)
    assert refused_by_kafka(View(CONSUMER, OFFSETS), none) == {}
