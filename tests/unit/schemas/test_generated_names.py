"""KIP-211, "Another Related Change": groups whose names the console consumer made up."""

from __future__ import annotations

import re

import pytest

from schemas.expiration_rules import shared_names, tools_by_pattern


def tool_naming(group: str) -> str | None:
    return next((tool for like, tool in tools_by_pattern() if re.fullmatch(like, group)), None)


def shared_name(group: str) -> str:
    return next((name for like, name in shared_names() if re.fullmatch(like, group)), group)


@pytest.mark.parametrize(
    ("group", "tool", "called"),
    [
        ("console-consumer-7", "kafka-console-consumer", "console-consumer-<number>"),
        ("console-consumer-99999", "kafka-console-consumer", "console-consumer-<number>"),
        ("perf-consumer-31337", "kafka-consumer-perf-test", "perf-consumer-<number>"),
        ("test-group-1795252244270", "kafka-e2e-latency", "test-group-<time>"),
    ],
)
def test_names_that_tools_make_up_are_known(group: str, tool: str, called: str) -> None:
    assert (tool_naming(group), shared_name(group)) == (tool, called)


@pytest.mark.parametrize(
    "group",
    [
        *("console-consumer", "console-consumer-", "console-consumer-eu", "console-consumer-7a"),
        # The tool draws a number below 100,000.
        "console-consumer-100000x",
        *("my-console-consumer-7", "perf-consumer-a", "test-group-1", "orders", ""),
    ],
)
def test_names_that_people_gave_are_left_alone(group: str) -> None:
    assert tool_naming(group) is None
    assert shared_name(group) == group
