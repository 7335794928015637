"""The command line, run in the process of the tests: as the installed one, without its start.

What a command costs is mostly to start Python and to load libraries, a second for each. Here it
runs with stdout and stderr that are files, as where its output is piped.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from jobs.cli.main import run


def run_here(
    arguments: Sequence[str], *, cwd: Path | None = None, merged: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command line; return what it printed and its exit code.

    Args:
        arguments: Those behind `groupscope`.
        cwd: The folder to run in.
        merged: Take what goes to stderr as stdout, in order, as a terminal shows both.
    """
    with ExitStack() as stack:
        out = stack.enter_context(_file())
        err = out if merged else stack.enter_context(_file())
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            chdir(cwd or Path.cwd()),
            _arguments(arguments),
        ):
            code = run(list(arguments))
        return subprocess.CompletedProcess(
            ["groupscope", *arguments],
            code,
            stdout=_text(out),
            stderr="" if merged else _text(err),
        )


def _file() -> TextIO:
    return tempfile.TemporaryFile("w+", encoding="utf-8", newline="")


def _text(file: TextIO) -> str:
    file.flush()
    file.seek(0)
    return file.read().replace("\r\n", "\n")


@contextmanager
def _arguments(arguments: Sequence[str]) -> Iterator[None]:
    """Let the process have been called so: an error looks there for `--no-color`."""
    kept, sys.argv = sys.argv, ["groupscope", *arguments]
    try:
        yield
    finally:
        sys.argv = kept
