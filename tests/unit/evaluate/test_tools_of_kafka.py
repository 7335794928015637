"""What rules advise can be followed: tools have the options, and settings change as it is told."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from schemas.finding_rules import FindingRule, finding_rules

KNOWN = json.loads((Path(__file__).parents[2] / "cases/commands/kafka_tools.json").read_text())
SETTING = re.compile(r"(?<![\w.{-])[a-z-]+(?:\.[a-z]+)+(?![\w}.]*\})")
CHANGES = re.compile(r"\b(raise|lower|change|disable|set|let|need|take)s?\b", re.IGNORECASE)
RULES = finding_rules()


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.:])\s+(?=[A-Z])", text)


def commands(rule: FindingRule) -> list[str]:
    return [rule.suggestion, *([rule.restore.otherwise] if rule.restore else [])]


OF_KAFKA = sorted({each for rule in RULES for each in commands(rule) if each[:6] == "kafka-"})


@pytest.mark.parametrize("command", OF_KAFKA)
def test_the_tool_has_the_options(command: str) -> None:
    tool, *words = shlex.split(command)
    given = [each.removeprefix("--") for each in words if each.startswith("--")]
    assert set(given) <= set(KNOWN["tools"][tool])
    for exclusive in KNOWN["at_most_one_of"]:
        assert len(set(given) & set(exclusive)) <= 1
    for option, needed in KNOWN["only_with"].items():
        assert option not in given or needed in given
    assert ("bootstrap-server" in given) == (tool != "kafka-dump-log")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_no_command_takes_a_list_of_names_for_one(rule: FindingRule) -> None:
    several = {name for name, each in rule.values.items() if each["take"] == "names"}
    named = {name for each in commands(rule) for name in re.findall(r"\{(\w+)\}", each)}
    assert several & named == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_brokers_read_when_they_start_is_advised_with_a_restart(rule: FindingRule) -> None:
    for sentence in sentences(f"{rule.why} {rule.message}"):
        named = set(SETTING.findall(sentence)) - set(KNOWN["not_settings"])
        assert named <= KNOWN["settings"].keys()
        static = [each for each in named if KNOWN["settings"][each] == "restart"]
        if static and CHANGES.search(sentence) and sentence in sentences(rule.why):
            assert "restart" in sentence or " were set" in sentence or " is lowered" in sentence


def test_no_setting_is_declared_that_no_rule_names() -> None:
    named = {each for rule in RULES for each in SETTING.findall(f"{rule.why} {rule.message}")}
    assert KNOWN["settings"].keys() - named == set()
