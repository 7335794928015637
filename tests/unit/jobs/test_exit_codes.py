"""What goes wrong becomes one line on stderr and the exit code of the contract."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from analytics.errors import (
    CannotTellError,
    ClusterUnfitError,
    EnvironmentUnfitError,
    InputNotRecognizedError,
    InputUnreadableError,
    InstallationError,
    OutputRefusedError,
    ReadFailedError,
    SettingRefusedError,
    WorkspaceError,
)
from jobs.cli import main
from jobs.cli.main import run

Acting = Callable[[Callable[[], object]], None]


@pytest.fixture
def acting(monkeypatch: pytest.MonkeyPatch) -> Acting:
    """Replace the command line by one whose only command does what it is told."""

    def replace(act: Callable[[], object]) -> None:
        command = click.Group(commands=[click.Command("act", callback=act)])
        monkeypatch.setattr(main, "cli", command)

    return replace


def raising(error: BaseException) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputNotRecognizedError("x is no dump"), 2),
        (OutputRefusedError("x is not empty"), 2),
        (SettingRefusedError("x is after y"), 2),
        (ClusterUnfitError("x is not there (on host)"), 2),
        (click.UsageError("x and y exclude each other"), 2),
        (InputUnreadableError("x cannot be read"), 3),
        (ReadFailedError("x cannot be read"), 3),
        (WorkspaceError("x was never finished"), 3),
        (CannotTellError("x is not in the dump"), 3),
        (EnvironmentUnfitError("no java"), 3),
        (InstallationError("two roots"), 3),
        (PermissionError(13, "Permission denied", "x"), 3),
        (OSError(28, "No space left on device", "x"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_kind_of_error_has_its_code_and_its_line(
    acting: Acting, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    acting(raising(error))
    assert run(["act"]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    assert str(getattr(error, "filename", None) or error) in told.err


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(28, "Error writing bytes. Detail: [errno 28] No space left on device"),
            "No space left on device: make room",
        ),
        (
            RuntimeError("Job aborted: ... OSError: [Errno 30] Read-only file system ..."),
            "Read-only file system: --out",
        ),
        (
            RuntimeError("java.lang.OutOfMemoryError: Java heap space\n\tat org.apache..."),
            "Java heap space: give Spark more memory: --conf spark.driver.memory",
        ),
    ],
)
def test_what_the_system_refuses_workers_and_the_jvm_is_no_error_of_ours(
    acting: Acting, capsys: pytest.CaptureFixture[str], error: Exception, line: str
) -> None:
    acting(raising(error))
    assert run(["act"]) == 3
    told = capsys.readouterr().err
    assert told.startswith(f"groupscope: {line}")
    assert len(told.splitlines()) == 1


def test_an_error_of_ours_keeps_its_traceback_in_a_file_and_names_it(
    acting: Acting,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    acting(raising(ZeroDivisionError("first line\nsecond line")))
    assert run(["act"]) == 4
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    named = re.search(r"traceback in (\S+)\)", told)
    assert named is not None
    kept = Path(named[1]).read_text(encoding="utf-8")
    assert "Traceback" in kept
    assert "second line" in kept
    assert "groupscope act" in kept


def test_what_breaks_while_an_interruption_is_cleaned_up_after_is_still_one(
    acting: Acting, capsys: pytest.CaptureFixture[str]
) -> None:
    def act() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionError("the JVM does not answer")

    acting(act)
    assert run(["act"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_command_that_is_done_ends_with_zero(acting: Acting) -> None:
    acting(lambda: "what a command returns is nobody's exit code")
    assert run(["act"]) == 0


@pytest.mark.parametrize("code", [1, 3])
def test_a_command_may_end_with_a_code_of_its_own(acting: Acting, code: int) -> None:
    acting(lambda: click.get_current_context().exit(code))
    assert run(["act"]) == code


def test_what_a_signal_does_is_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt):
        main._interrupt(15, None)
