"""A store that does not answer: one line and exit code 3, and an interruption ends the wait."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import COMMAND, Groupscope

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(240)
        yield server


def location(server: socket.socket, more: str = "") -> str:
    host, port = server.getsockname()
    return f"s3://box/dump?endpoint_override={host}:{port}&scheme=http{more}"


@pytest.mark.installed
def test_a_wait_for_a_store_is_ended_by_sigterm(silent: socket.socket) -> None:
    run = subprocess.Popen(
        [str(COMMAND), "inspect", location(silent, "&request_timeout=600")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=KEYS,
    )
    connection, _ = silent.accept()
    with connection:
        connection.recv(1)
        run.send_signal(signal.SIGTERM)
        printed, words = run.communicate(timeout=240)
    assert (run.returncode, printed) == (130, "")
    assert words == (
        "groupscope: interrupted while a store did not answer; "
        "what was unfinished is removed by the next run\n"
    )


@pytest.mark.long
@pytest.mark.installed
@pytest.mark.parametrize("is_there", [True, False], ids=["silent", "refused"])
def test_a_store_that_cannot_be_reached_is_told_in_one_line(
    installed: Groupscope, silent: socket.socket, tmp_path: Path, *, is_there: bool
) -> None:
    there = location(silent, "&request_timeout=2")
    if not is_there:
        silent.close()
    ran = installed("inspect", there, cwd=tmp_path, env=KEYS)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.count("\n") == 1
    assert "NETWORK_CONNECTION" in ran.stderr
    assert "this says nothing about what is in it; try again" in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "foo://box/dump"),
        ("lag", "DUMP", "--out", "foo://box/out"),
        ("lag", "DUMP", "--end-offsets", "foo://box/ends.csv"),
        ("lag", "DUMP", "--output", "foo://box/answer"),
        ("report", "foo://box/audited"),
        ("restore", "DUMP", "--group", "g", "--as-of", "end", "--out", "foo://box/out"),
    ],
    ids=" ".join,
)
def test_a_scheme_that_nothing_opens_is_called_wrongly(
    groupscope: Groupscope, failover_dump: Path, arguments: tuple[str, ...]
) -> None:
    ran = groupscope(*(str(failover_dump) if each == "DUMP" else each for each in arguments))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "nothing here opens URIs of foo:" in ran.stderr
    assert "s3:, s3a:," in ran.stderr
