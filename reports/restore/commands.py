"""A shell script that gives offsets back with Kafka's own tools: a dry run first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from reports.columns import printable

CONSUMER_TOOL = "kafka-consumer-groups.sh"
STREAMS_TOOL = "kafka-streams-groups.sh"

_HEAD = """\
#!/bin/sh
# {title}
#
# Needs Kafka's tools on the PATH, and BOOTSTRAP_SERVER=host:port in the environment; where the
# cluster wants credentials, COMMAND_CONFIG=client.properties too.
#
#   sh commands.sh              shows what would change (--dry-run), changes nothing
#   sh commands.sh --execute    shows it, then changes it
#
# Kafka's tools reset groups without members only, put an offset outside the log at its nearest end,
# and end with code 0 even where they fail: read what they print, and describe the groups after.
# They commit without metadata and leader epoch.
set -eu
cd "$(dirname "$0")"
: "${{BOOTSTRAP_SERVER:?give host:port}}"

# --- what would change ------------------------------------------------------------------------
"""
_BETWEEN = """
[ "${1:-}" = --execute ] || exit 0

# --- the change -------------------------------------------------------------------------------
"""


@dataclass(frozen=True)
class Reset:
    """One group whose offsets are given back.

    Attributes:
        group: Its name.
        file: Of its offsets, beside the script.
        tool: The name of Kafka's tool.
        notes: What a person has to know or do first, one sentence each.
    """

    group: str
    file: str
    tool: str = CONSUMER_TOOL
    notes: Sequence[str] = ()


def commands_text(title: str, resets: Sequence[Reset]) -> str:
    """Return the script.

    Args:
        title: What is given back, in one line.
        resets: The groups, in order.
    """
    dry = [line for each in resets for line in _lines(each, "--dry-run")]
    execute = [line for each in resets for line in _lines(each, "--execute")]
    if not resets:
        dry = execute = ["# nothing is given back"]
    head = _HEAD.format(title=printable(title))
    return "\n".join([head, *dry, _BETWEEN, *execute, ""])


def _lines(reset: Reset, mode: str) -> list[str]:
    notes = [f"# {printable(note)}" for note in reset.notes]
    name = shlex.quote(reset.group)
    # A name with a hyphen in front would be taken for an option.
    group = f"--group={name}" if reset.group.startswith("-") else f"--group {name}"
    command = (
        f'{reset.tool} --bootstrap-server "$BOOTSTRAP_SERVER" '
        '${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} '
        f"{group} --reset-offsets --from-file {shlex.quote(reset.file)} {mode}"
    )
    return [*notes, command]
