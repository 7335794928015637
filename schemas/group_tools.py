"""Kafka's tools by type of group, read from `rules/group_tools.json`.

Each refuses groups of another type (``ConsumerGroupCommand``, ``ShareGroupCommand``,
``StreamsGroupCommand``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from schemas.model import SchemaError

_FILE: Final = "rules/group_tools.json"


@dataclass(frozen=True)
class GroupTool:
    """A tool.

    Attributes:
        name: As Kafka's packages of other systems call it; its own has `.sh` behind it.
        topic_option: The option that names a topic.
    """

    name: str
    topic_option: str

    @property
    def script(self) -> str:
        """Return its file in Kafka's `bin`."""
        return f"{self.name}.sh"


def tool_of(group_type: str) -> GroupTool:
    """Return the tool for groups of a type.

    Raises:
        SchemaError: There is no such type.
    """
    tools = group_tools()
    if group_type not in tools:
        raise SchemaError(f"no tool is declared for groups of type {group_type!r}")
    return tools[group_type]


@cache
def group_tools() -> Mapping[str, GroupTool]:
    """Return the tools by type of group.

    Raises:
        SchemaError: The file is not what it has to be.
    """
    try:
        return {
            group_type: GroupTool(each["tool"], each["topic_option"])
            for group_type, each in _document()["tools"].items()
        }
    except KeyError as error:
        raise SchemaError(f"{_FILE}: {error} is missing") from error


def command_for_type() -> str:
    """Return the command that tells of which type a group is."""
    return str(_document()["type_not_known"])


@cache
def _document() -> Mapping[str, Any]:
    text = files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    document: Mapping[str, Any] = json.loads(text)
    return document
