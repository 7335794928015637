"""`--on-findings COMMAND`: a command of the team's own that is told what an audit found."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jobs.cli.console import Console

_SECONDS: Final = 300
_MOST_CHARACTERS: Final = 2000


def run_hook(console: Console, command: str, location: str, summary: str) -> None:
    """Run a command with `summary.json` on its standard input, and its path as last argument.

    What it prints goes to stderr. That it fails, or takes longer than five minutes, is said, and
    changes nothing of the audit.

    Args:
        console: Where it is said.
        command: As a shell would split it; no shell runs.
        location: Of the file.
        summary: What is in it.
    """
    try:
        words = shlex.split(command)
        ran = subprocess.run(  # noqa: S603 - the team's own command
            [*words, location],
            input=summary.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        console.error(f"--on-findings {command}: {error}")
        return
    for printed in (ran.stdout, ran.stderr):
        if text := printed.decode("utf-8", "replace").strip():
            console.say(text[:_MOST_CHARACTERS])
    if ran.returncode != 0:
        console.error(f"--on-findings {command}: ended with {ran.returncode}")
