"""The command `groupscope`: finds the subcommand, and turns what went wrong into an exit code."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit("groupscope: not yet")
