"""Colors are for terminals whose owner did not say that they want none."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import COMMAND

ESCAPE = b"\x1b["
LOST = ("timeline", "--group", "parcel-router", "--table", "verdicts")


def on_a_terminal(arguments: list[str], env: Mapping[str, str]) -> bytes:
    """Return what a command writes where stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(COMMAND), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, **env},
    ):
        os.close(theirs)
        text = b""
        try:
            while read := os.read(ours, 65536):
                text += read
        except OSError:  # the other end is closed
            pass
        finally:
            os.close(ours)
    return text


@pytest.mark.parametrize(
    ("more", "env", "is_colored"),
    [((), {}, True), ((), {"NO_COLOR": "1"}, False), (("--no-color",), {}, False)],
    ids=["a terminal", "NO_COLOR", "--no-color"],
)
def test_what_went_wrong_is_red_on_a_terminal(
    failover_workspace: Path, more: tuple[str, ...], env: Mapping[str, str], *, is_colored: bool
) -> None:
    command, *options = LOST
    told = on_a_terminal([command, str(failover_workspace), *options, *more], env)
    assert b"! parcel-router" in told
    assert (ESCAPE in told) is is_colored
    error = on_a_terminal(["list", str(failover_workspace / "nowhere"), *more], env)
    assert b"there is no such file or folder" in error
    assert (ESCAPE in error) is is_colored
