"""A finding's command is of the tool for groups of its group's type, or asks for the type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from analytics.questions.findings.evidence import KnownRecords
from analytics.questions.findings.found import findings
from schemas.finding_rules import rule_of
from schemas.model import SchemaError
from tests.unit.questions.findings.test_findings import ASKED_OF, DOCUMENT, LAG, NOON, row

DELETE = "{tool} --delete-offsets --group {group_id} {topic_option} {topic}:{numbers}"
BY_TOPIC: dict[str, Any] = DOCUMENT | {
    "per": ["group_id", "topic"],
    "values": {
        **DOCUMENT["values"],
        "numbers": {"take": "numbers", "column": "home"},
    },
    "suggestion": DELETE,
}


def known(**types: str | None) -> KnownRecords:
    columns = {"group_id": list(types), "group_type": list(types.values())}
    groups = pa.table({name: pa.array(each, pa.string()) for name, each in columns.items()})

    def read(name: str, columns: Any, where: pc.Expression) -> pa.Table:
        assert name == "groups"
        return ds.dataset(groups).to_table(list(columns), filter=where)

    return KnownRecords(frozenset({"groups"}), read)


def suggested(rows: list[Any], of: KnownRecords | None, schema: pa.Schema = LAG) -> list[str]:
    table = pa.Table.from_pylist(rows, schema)
    told = findings([rule_of("behind", BY_TOPIC)], {"lag": table}, NOON, {}, ASKED_OF, of)
    suggestions: list[str] = told["suggestion"].to_pylist()
    return suggestions


@pytest.mark.parametrize(
    ("group_type", "tool", "option"),
    [
        ("classic", "kafka-consumer-groups.sh", "--topic"),
        ("simple", "kafka-consumer-groups.sh", "--topic"),
        ("consumer", "kafka-consumer-groups.sh", "--topic"),
        ("share", "kafka-share-groups.sh", "--topic"),
        ("streams", "kafka-streams-groups.sh", "--input-topic"),
    ],
)
def test_the_tool_is_that_of_the_type(group_type: str, tool: str, option: str) -> None:
    (command,) = suggested([row()], known(billing=group_type))
    assert command == f"{tool} --delete-offsets --group billing {option} orders:7"


def test_partitions_are_listed_once_and_in_order() -> None:
    rows = [row() | {"home": number} for number in (11, 2, 0, 2)]
    (command,) = suggested(rows, known(billing="consumer"))
    assert command.endswith(" --topic orders:0,2,11")


def test_groups_of_several_types_have_each_its_own() -> None:
    rows = [row(), row(group="router"), row(group="gone")]
    commands = suggested(rows, known(billing="streams", router="consumer"))
    assert [each.split()[0] for each in commands] == [
        "kafka-streams-groups.sh",
        "kafka-groups.sh",
        "kafka-consumer-groups.sh",
    ]


@pytest.mark.parametrize("of", [None, known(), known(billing=None)])
def test_where_the_type_is_not_known_the_command_asks_for_it(of: KnownRecords | None) -> None:
    assert suggested([row()], of) == ["kafka-groups.sh --bootstrap-server BROKER --list"]


def test_a_group_that_is_gone_has_the_type_that_its_rows_tell() -> None:
    schema = LAG.append(pa.field("group_type", pa.string()))
    typed = row() | {"group_type": "share"}
    assert suggested([typed], known(), schema)[0].startswith("kafka-share-groups.sh ")
    assert suggested([typed], known(billing="classic"), schema)[0].startswith("kafka-consumer-")


def test_a_type_that_has_no_tool_is_an_error() -> None:
    with pytest.raises(SchemaError, match="'raft'"):
        suggested([row()], known(billing="raft"))


def test_a_rule_names_the_tool_only_where_it_is_about_a_group() -> None:
    with pytest.raises(SchemaError, match="group_id"):
        rule_of("behind", DOCUMENT | {"per": ["topic"], "suggestion": "{tool} --list"})
