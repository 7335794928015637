"""KIP-932's limits held against what is set, and against what is recorded of what they limit."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest

from analytics.questions.share.limits import (
    LimitSettings,
    LimitValue,
    Seen,
    lacking_by_group,
    most_by_group,
    share_limits_found,
)
from analytics.questions.share.settings import BROKER_CONFIG, DYNAMIC
from schemas.share_rules import limit_verdicts, share_limits

SIZE, DELIVERIES = "group.share.max.size", "group.share.delivery.count.limit"
LOCKS, LOCK_MS = "group.share.partition.max.record.locks", "group.share.record.lock.duration.ms"
OWN_DELIVERIES = "share.delivery.count.limit"


def rows(
    brokers: dict[str, str] | None = None,
    groups: dict[str, dict[str, str]] | None = None,
    *,
    seen: Seen | None = None,
    types: dict[str, str] | None = None,
    release: str = "4.3",
) -> dict[tuple[str, str | None], dict[str, Any]]:
    said = LimitSettings(
        {name: LimitValue(text, BROKER_CONFIG) for name, text in (brokers or {}).items()},
        {
            group: {name: LimitValue(text, DYNAMIC) for name, text in values.items()}
            for group, values in (groups or {}).items()
        },
    )
    found = share_limits_found(said, seen or Seen(), types or {}, release).to_dicts()
    assert {row["verdict"] for row in found} <= limit_verdicts().keys()
    return {(row["setting"], row["group_id"]): row for row in found}


def verdict(row: dict[str, Any]) -> tuple[str, bool]:
    return row["verdict"], row["reason"] is not None


def test_each_limit_has_a_row_and_what_is_kept_in_memory_alone_is_called_so() -> None:
    found = rows()
    assert {name for name, _ in found} == set(share_limits())
    assert verdict(found[LOCK_MS, None]) == ("not_recorded", False)
    row = found[LOCK_MS, None]
    assert (row["value"], row["source"], row["default_value"]) == (30000, "default_assumed", 30000)
    assert verdict(found["group.share.max.groups", None]) == ("not_in_release", True)


@pytest.mark.parametrize(
    ("text", "members", "expected"),
    [
        ("3", 2, ("within", False)),
        ("3", 3, ("reached", False)),
        ("3", 4, ("exceeded", False)),
        ("1001", 4, ("out_of_bounds", True)),
        ("many", 4, ("out_of_bounds", True)),
        (None, 200, ("reached", False)),
        # Nobody said that the limit is 200.
        (None, 201, ("cannot_tell", True)),
    ],
)
def test_members_of_a_group(text: str | None, members: int, expected: tuple[str, bool]) -> None:
    said = {} if text is None else {SIZE: text}
    seen = Seen({"members": {"small": 1, "large": members}})
    row = rows(said, seen=seen)[SIZE, None]
    assert verdict(row) == expected
    assert (row["seen"], row["seen_of"]) == (members, "large")


def test_where_the_dump_lacks_records_there_may_be_more() -> None:
    said, lost = {SIZE: "3"}, {"g": "3 records are lost"}
    for members, expected in ((2, "cannot_tell"), (3, "reached"), (4, "exceeded")):
        row = rows(said, seen=Seen({"members": {"g": members}}, incomplete=lost))[SIZE, None]
        assert row["verdict"] == expected
    assert rows(said, seen=Seen({"members": {}}, incomplete=lost))[LOCK_MS, None]["reason"] is None


def test_a_group_with_a_limit_of_its_own_is_held_against_that_one() -> None:
    seen = Seen({"delivery_count": {"strict": 3, "other": 5}})
    found = rows({DELIVERIES: "5"}, {"strict": {OWN_DELIVERIES: "2"}}, seen=seen)
    assert verdict(found[OWN_DELIVERIES, "strict"]) == ("exceeded", False)
    assert verdict(found[DELIVERIES, None]) == ("reached", False)
    assert found[DELIVERIES, None]["seen_of"] == "other"


def test_brokers_narrow_what_a_group_may_set() -> None:
    limits = {"group.share.max.delivery.count.limit": "8"}
    found = rows(limits, {"g": {OWN_DELIVERIES: "9"}, "h": {OWN_DELIVERIES: "8"}})
    assert verdict(found[OWN_DELIVERIES, "g"]) == ("out_of_bounds", True)
    assert found[OWN_DELIVERIES, "g"]["most"] == 8
    assert verdict(found[OWN_DELIVERIES, "h"]) == ("not_recorded", False)


def test_a_window_may_pass_its_limit_by_the_rest_of_a_batch() -> None:
    seen = Seen({"window_offsets": {"g": 240}})
    assert verdict(rows({LOCKS: "200"}, seen=seen)[LOCKS, None]) == ("reached", False)


@pytest.mark.parametrize(("groups", "expected"), [(9, "within"), (10, "reached"), (12, "exceeded")])
def test_share_groups_were_limited_in_4_0(groups: int, expected: str) -> None:
    said = {"group.share.max.groups": "10"}
    row = rows(said, seen=Seen(groups=groups), release="4.0")["group.share.max.groups", None]
    assert (row["verdict"], row["seen"]) == (expected, groups)


def test_the_topic_of_share_state_keeps_the_number_it_was_made_with() -> None:
    name = "share.coordinator.state.topic.num.partitions"
    seen = Seen(state_partitions=3)
    assert verdict(rows({name: "3"}, seen=seen)[name, None]) == ("within", False)
    assert verdict(rows({name: "50"}, seen=seen)[name, None]) == ("differs", True)
    assert verdict(rows(seen=seen)[name, None]) == ("within", True)


@pytest.mark.parametrize(
    ("asked", "is_of", "expected"),
    [
        ("share", "share", "within"),
        ("share", "consumer", "differs"),
        ("consumer", "share", "differs"),
        ("consumer", "classic", "within"),
        ("consumer", "streams", "differs"),
        ("streams", "streams", "out_of_bounds"),
        ("share", None, "not_recorded"),
    ],
)
def test_group_type_against_what_the_group_is(asked: str, is_of: str | None, expected: str) -> None:
    types = {} if is_of is None else {"G1": is_of}
    row = rows(groups={"G1": {"group.type": asked}}, types=types)["group.type", "G1"]
    assert row["verdict"] == expected
    assert row["reason"] is not None


def test_what_a_filter_left_out_is_not_called_unrecorded() -> None:
    left_out = "groups of --exclude-group g: this workspace was made without them"
    here = rows({}, seen=Seen(left_out=left_out))
    assert (here[SIZE, None]["verdict"], here[SIZE, None]["reason"]) == ("cannot_tell", left_out)
    # What is kept in memory alone, no filter leaves out.
    assert here[LOCK_MS, None]["verdict"] == "not_recorded"


@pytest.mark.parametrize("seed", range(40))
def test_of_groups_without_settings_one_tells_as_much_as_all(seed: int) -> None:
    random = Random(seed)
    names = random.sample("abcdefgh", 6)
    members = {name: random.choice([None, 1, 2, 2, 3]) for name in names}
    lacking = {name: random.choice([None, None, f"records of {name} are lost"]) for name in names}
    groups = pl.DataFrame(
        {
            "group_id": names,
            "members": list(members.values()),
            "missing": list(lacking.values()),
            "complete": [each is None for each in lacking.values()],
        },
        schema_overrides={"members": pl.Int64, "missing": pl.String},
    )
    own = {name: {"share.delivery.count.limit": "2"} for name in random.sample(names, 2)}
    is_set = pl.col("group_id").is_in([*own])
    every = (
        {name: most for name, most in members.items() if most is not None},
        {name: why for name, why in lacking.items() if why is not None},
    )
    some = (most_by_group(groups, "members", is_set), lacking_by_group(groups, groups, is_set))
    whole, reduced = (
        rows(
            {SIZE: "3", DELIVERIES: "3"},
            own,
            seen=Seen({"members": most, "delivery_count": most}, incomplete=incomplete),
        )
        for most, incomplete in (every, some)
    )
    assert reduced == whole
    assert len(some[0]) <= 3
