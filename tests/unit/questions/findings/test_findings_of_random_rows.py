"""Findings of any rows are, word for word, those that are made of them one at a time."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from analytics.questions.findings import found as made
from analytics.questions.findings.evidence import KnownRecords
from analytics.questions.findings.found import findings
from schemas.finding_rules import RECORD_AT, FindingRule, rule_of
from tests.support.plain_findings import plain_findings
from tests.unit.questions.findings.test_findings import DOCUMENT
from tests.unit.questions.findings.test_rules import AS_OF, ASKED_OF, RULES, SAYS, schema_of

NAMES: Final = (
    *("billing", "a b", "it's", "", '"quoted"', "x; rm -rf ~ $(id)", "--help", "-", "~"),
    *("{lag} {0}", "Zürich", "日本", "tab\tand\nline", "\x7f\x00", "a\n", "\N{PILE OF POO}"),
    *("None", "not known", "\\", "a" * 300),
)
PLACES: Final = ("__consumer_offsets-3@17", "__share_group_state-0@0", "no place", "x-1@2")
NUMBERS: Final = (0, 1, 2, -1, -61_000, 999, 1000, 1234, 999_999, 86_400_000, 10**12)
EXTREMES: Final = {8: 2**7, 16: 2**15, 32: 2**31, 64: 2**63}
FLOATS: Final = (0.0, 1.0, -1.0, 0.5, 2.005, -3.14159, 1234567.891, 1e18, float("inf"))
TYPES: Final = ("classic", "consumer", "share", "streams", "simple")


def value(kind: pa.DataType, of: random.Random) -> Any:
    if of.random() < 0.2:
        return None
    if pa.types.is_integer(kind):
        bound = EXTREMES[kind.bit_width]
        known = [each for each in NUMBERS if -bound <= each < bound]
        return of.choice([*known, *known, bound - 1, -bound])
    at = AS_OF + timedelta(microseconds=of.choice([of.randrange(-(10**15), 10**9), 0]))
    known_of = {"string": NAMES + PLACES, "double": FLOATS, "bool": (True, False)}
    return of.choice(known_of.get(str(kind), (at,)))


def random_rows(rule: FindingRule, of: random.Random) -> pa.Table:
    """Return rows with the columns that a rule reads; few names, so that findings have several."""
    schema = schema_of(rule.table)
    fields = [schema.field(name) for name in sorted(rule.columns())]
    names = of.sample(NAMES, 4)
    drawn = [
        [
            of.choice(names) if each.name in rule.per and pa.types.is_string(each.type) else None
            for each in fields
        ]
        for _ in range(of.randrange(40))
    ]
    return pa.table(
        {
            each.name: pa.array(
                [row[n] if row[n] is not None else value(each.type, of) for row in drawn],
                each.type,
            )
            for n, each in enumerate(fields)
        }
    )


def groups_of(types: dict[str, str]) -> KnownRecords:
    """Return a workspace of which only groups are known, and their last records."""
    schema = schema_of("groups")
    rows = [
        {"group_id": name, "group_type": kind, "coordinator_partition": n % 50, "record_offset": n}
        for n, (name, kind) in enumerate(types.items())
    ]
    groups = pa.Table.from_pylist(rows, schema)

    def read(name: str, columns: Any, where: pc.Expression) -> pa.Table:
        assert name == "groups"
        return ds.dataset(groups).to_table(list(columns), filter=where)

    return KnownRecords(frozenset({"groups"}), read)


def check(rule: FindingRule, rows: pa.Table, types: dict[str, str]) -> None:
    every, groups = replace(rule, where=()), groups_of(types)
    found = findings([every], {rule.table: rows}, AS_OF, SAYS, ASKED_OF, groups)
    plain = plain_findings(every, rows, SAYS, ASKED_OF, types, groups)
    assert found.schema == plain.schema
    for one, other in zip(found.to_pylist(), plain.to_pylist(), strict=True):
        assert one == other


def types_of(of: random.Random) -> dict[str, str]:
    return {each: of.choice(TYPES) for each in NAMES if of.random() < 0.8}


@pytest.fixture(params=[3, 20_000])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", sorted(RULES))
def test_findings_of_a_rule_are_those_that_are_made_one_at_a_time(name: str) -> None:
    of = random.Random(f"{name}")
    check(RULES[name], random_rows(RULES[name], of), types_of(of))


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(RULES))
def test_findings_of_a_rule_are_so_of_many_random_rows(name: str) -> None:
    for seed in range(50):
        of = random.Random(f"{name} {seed}")
        check(RULES[name], random_rows(RULES[name], of), types_of(of))


COLUMNS: Final = {
    "text": "verdict",
    "number": "lag",
    "small": "partition",
    "time": "last_commit_at",
}


def test_every_way_to_make_one_value_of_several_is_as_of_one_at_a_time() -> None:
    taken = {
        f"{take}_{kind}": {"take": take, "column": column}
        for kind, column in COLUMNS.items()
        for take in ("sum", "min", "max", "first", "names", "numbers")
        if not (take == "sum" and kind in ("text", "time"))
        if not (take in ("names", "numbers") and kind == "time")
    }
    taken |= {
        "lasts": {"take": "max", "column": "lag", "as": "duration"},
        "fills": {"take": "sum", "column": "lag", "as": "bytes"},
        "count": {"take": "count"},
    }
    says = " ".join(f"{{{name}}}" for name in ("group_id", "partition", "most", "least", *taken))
    forms = "{sum_number:# record is|# records are}"
    counted = f"{{count:row}} {forms} {{min_small:partition}} {{most:time}} {{{{as it is}}}}"
    rule = rule_of(
        "behind",
        DOCUMENT
        | {
            "per": ["partition", "group_id"],
            "values": taken,
            "thresholds": {
                "most": {"value": 1.0, "unit": "times", "about": "So many."},
                "least": {"value": 0.125, "unit": "share", "about": "So much."},
            },
            "since": {"take": "first", "column": "last_commit_at"},
            "message": f"{says} {counted}",
            "suggestion": f"{says} {{dump}} {{tool}} {{topic_option}}",
            "record": {"partition": "partition", "topic": "topic", "offset": "lag"},
        },
    )
    of = random.Random(7)
    for _ in range(20):
        check(rule, random_rows(rule, of), types_of(of))


def test_the_record_at_which_a_rule_begins_is_a_column_of_evidence() -> None:
    rules = [each for each in RULES.values() if each.since and each.since["column"] == RECORD_AT]
    assert rules
    assert all(RECORD_AT not in each.columns() for each in rules)


def test_a_sum_may_be_more_than_64_bits_hold() -> None:
    rows = pa.table(
        {
            "group_id": ["billing"] * 4,
            "topic": ["orders"] * 4,
            "lag": [2**63 - 1] * 4,
            **{name: pa.array([1] * 4, pa.int64()) for name in ("home", "offset")},
            "at": [datetime(2026, 11, 21, tzinfo=UTC)] * 4,
        }
    )
    (one,) = findings(
        [rule_of("behind", DOCUMENT)], {"lag": rows}, AS_OF, SAYS, ASKED_OF
    ).to_pylist()
    assert "36,893,488,147,419,103,228 records behind" in one["message"]
