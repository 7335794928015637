"""The subcommands, found by name and imported only when they run: `--help` answers at once."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any, cast

import click

ENVIRONMENT_PREFIX = "GROUPSCOPE"

COMMANDS: Mapping[str, str] = {
    "inspect": "Show what is in a dump.",
    "decode": "Write every record of a dump into tables.",
    "replay": "Compute what the coordinators knew at an instant.",
    "describe": "Describe groups as Kafka's own tools do.",
    "list": "List the groups.",
    "timeline": "Show everything that happened to a group.",
    "diff": "Show what changed between two instants or two dumps.",
    "restore": "Write files and commands that give groups their offsets back.",
    "expiration": "Show which offsets expire when, and under which rule.",
    "balance": "Show how evenly partitions are assigned, and why not.",
    "rebalances": "Show which members joined and left before each rebalance.",
    "assign": "Run an assignor on a case.",
    "lag": "Show how far behind groups are.",
    "region": "Hold checkpoints kept outside of Kafka against committed offsets.",
    "share": "Show the backlog of share groups and what blocks it.",
    "usage": "Show what fills the internal topics.",
    "audit": "Ask every question of a dump and show what is worth a look.",
    "report": "Write the page of a workspace.",
    "forensics": "Write the page that an incident review wants.",
}
"""One line for each subcommand, in the order of `--help`: `NAME` is `jobs/commands/NAME.py`."""


def _name_variables(command: click.Command) -> None:
    """Name each option's environment variable after the option, not after its parameter."""
    for each in command.params:
        if isinstance(each, click.Option) and each.envvar is None:
            name = max(each.opts, key=len).lstrip("-").replace("-", "_").upper()
            each.envvar = f"{ENVIRONMENT_PREFIX}_{name}"


class CommandGroup(click.Group):
    """A group whose commands are the modules of `jobs`, none imported before it is called.

    Every option of every command reads `GROUPSCOPE_<OPTION>`, whichever command it belongs to.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - the protocol's
        cmd_name: str,
    ) -> click.Command | None:
        """Return the command, importing its module; None where there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"jobs.commands.{cmd_name}")
        # A command named like a builtin is a function with an underscore behind it.
        found = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
        command = cast("click.Command", found)
        command.context_settings.setdefault("auto_envvar_prefix", ENVIRONMENT_PREFIX)
        _name_variables(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from their one-line texts, importing none."""
        rows = [(name, COMMANDS[name]) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run the command; a reader that has gone away ends it well, not with click's code 1."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # `| head` has seen enough; what Python still holds for it has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return result
