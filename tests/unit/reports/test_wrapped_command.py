"""A command in several lines is, to a shell, the command in one."""

from __future__ import annotations

import shlex
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from reports.findings import wrapped_command

_NAMES = st.lists(st.text("ab '\"$;&*-é", min_size=1, max_size=40), min_size=1, max_size=12)


@settings(max_examples=15, deadline=None)
@given(_NAMES)
def test_a_shell_takes_all_lines_for_one_command(names: list[str]) -> None:
    words = [word for name in names for word in ("--group", name)]
    wrapped = wrapped_command(shlex.join(["printf", "%s\\0", *words]), 120)
    ran = subprocess.run(["sh", "-c", wrapped], capture_output=True, check=True, encoding="utf-8")
    assert ran.stdout.split("\0")[:-1] == words
    assert max(map(len, wrapped.splitlines())) <= 120


def test_what_a_terminal_would_act_on_is_shown_as_a_sign() -> None:
    assert wrapped_command("echo '\x1b[2J'", 120).isprintable()
