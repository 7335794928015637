"""Which of Kafka's tools deletes groups of a type."""

from __future__ import annotations

from typing import Final

_TOOLS: Final = {
    "share": "kafka-share-groups.sh",
    "streams": "kafka-streams-groups.sh",
}
_CONSUMER_TOOL: Final = "kafka-consumer-groups.sh"


def tool_of(group_type: str) -> str:
    """Return the tool for groups of a type."""
    return _TOOLS.get(group_type, _CONSUMER_TOOL)
