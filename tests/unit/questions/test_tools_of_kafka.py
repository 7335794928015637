"""What rules advise can be followed: tools have the options, and settings change as it is told."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from schemas.finding_rules import FindingRule, command_for_type, finding_rules, group_tools

KNOWN = json.loads((Path(__file__).parents[2] / "cases/commands/kafka_tools.json").read_text())
SETTING = re.compile(r"(?<![\w.{-])[a-z-]+(?:\.[a-z]+)+(?![\w}.]*\})")
CHANGES = re.compile(r"\b(raise|lower|change|disable|set|let|need|take)s?\b", re.IGNORECASE)
NEEDS_RESTART = "read-only"
RULES = finding_rules()


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.:])\s+(?=[A-Z])", text)


def by_type(command: str) -> list[str]:
    """Return a command as it is for groups of each type."""
    return [
        command.replace("{tool}", each.name).replace("{topic_option}", each.topic_option)
        for each in group_tools().values()
    ]


ADVISED = sorted({one for rule in RULES for each in rule.commands() for one in by_type(each)})
OF_KAFKA = [each for each in (*ADVISED, command_for_type()) if each.startswith("kafka-")]


@pytest.mark.parametrize("command", OF_KAFKA)
def test_the_tool_has_the_options(command: str) -> None:
    tool, *words = shlex.split(command)
    assert tool.endswith(".sh"), "all of them are named as Apache Kafka ships them"
    given = {each.removeprefix("--") for each in words if each.startswith("--")}
    known = KNOWN["tools"][tool.removesuffix(".sh")]
    options = set(known["options"])
    if "actions" in known:
        (action,) = [each for each in words if each in known["actions"]]
        options |= set(known["actions"][action])
    assert given <= options
    for exclusive in KNOWN["at_most_one_of"]:
        assert len(given & set(exclusive)) <= 1
    for option, needed in KNOWN["only_with"].items():
        assert option not in given or given & set(needed)
    assert ("bootstrap-server" in given) == (tool != "kafka-dump-log.sh")


def test_groups_of_each_type_have_a_tool_of_their_own_kind() -> None:
    names = {group_type: each.name for group_type, each in group_tools().items()}
    consumers = {"classic", "simple", "consumer"}
    assert {each for each in names if names[each] == "kafka-consumer-groups.sh"} == consumers
    assert (names["share"], names["streams"]) == (
        "kafka-share-groups.sh",
        "kafka-streams-groups.sh",
    )
    for each in group_tools().values():
        assert (
            each.topic_option.removeprefix("--")
            in KNOWN["tools"][each.name.removesuffix(".sh")]["options"]
        )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_command_about_a_group_is_of_the_tool_for_its_type(rule: FindingRule) -> None:
    own = {"share groups": "kafka-share-groups.sh"}.get(rule.subject, "{tool}")
    for each in rule.commands():
        if "--group" in each and not each.startswith("groupscope"):
            assert each.split()[0] in (own, "{tool}")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_partitions_of_which_offsets_are_deleted_are_named_by_number(rule: FindingRule) -> None:
    # Without numbers the tool asks for a topic that may be gone (ConsumerGroupCommand).
    for each in rule.commands():
        assert "--delete-offsets" not in each or each.endswith(" {topic}:{numbers}")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_settings_of_a_topic_are_shown_with_those_that_it_has_from_brokers(
    rule: FindingRule,
) -> None:
    # Without --all ConfigCommand shows what was set of the topic itself.
    for each in rule.commands():
        assert not each.startswith("kafka-configs") or each.endswith(" --all")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_no_command_takes_a_list_of_names_for_one(rule: FindingRule) -> None:
    several = {name for name, each in rule.values.items() if each["take"] == "names"}
    named = {name for each in rule.commands() for name in re.findall(r"\{(\w+)\}", each)}
    assert several & named == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_brokers_read_when_they_start_is_advised_with_a_restart(rule: FindingRule) -> None:
    for sentence in sentences(f"{rule.why} {rule.message}"):
        named = set(SETTING.findall(sentence)) - set(KNOWN["not_settings"])
        assert named <= KNOWN["settings"].keys()
        static = [each for each in named if KNOWN["settings"][each] == NEEDS_RESTART]
        if static and CHANGES.search(sentence) and sentence in sentences(rule.why):
            assert "restart" in sentence or " were set" in sentence or " is lowered" in sentence


def test_no_setting_is_declared_that_no_rule_names() -> None:
    named = {each for rule in RULES for each in SETTING.findall(f"{rule.why} {rule.message}")}
    assert KNOWN["settings"].keys() - named == set()
