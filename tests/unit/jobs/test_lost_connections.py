"""What kills Spark in the middle is told in one line, as no fault of groupscope."""

from __future__ import annotations

import click
import pytest
from py4j.protocol import Py4JNetworkError

from jobs.cli import main
from jobs.cli.exit_codes import CANNOT_TELL, INTERNAL_ERROR

LOST = "the connection to Spark was lost"
WORKER = "Job aborted: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"


def stopped_after(before: Exception) -> Exception:
    """Return what comes of closing Spark where it is gone."""
    error = RuntimeError("An error occurred while calling o7.stop")
    error.__context__ = before
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), LOST),
        (ConnectionRefusedError(111, "Connection refused"), LOST),
        (ConnectionResetError(104, "Connection reset by peer"), LOST),
        (RuntimeError("Job 3 cancelled because SparkContext was shut down"), LOST),
        (stopped_after(Py4JNetworkError("Answer from Java side is empty")), LOST),
        (RuntimeError(WORKER), "Python worker exited unexpectedly: something killed it"),
        (RuntimeError("ExecutorLostFailure (executor 2 exited)"), "an executor was lost"),
    ],
)
def test_what_was_killed_is_told_with_what_to_do(
    error: Exception,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, line = ended_with(error, monkeypatch, capsys)
    assert code == CANNOT_TELL
    assert said in line
    assert "a bug" not in line


def test_a_fault_of_our_own_stays_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = ended_with(KeyError("topic"), monkeypatch, capsys)
    assert code == INTERNAL_ERROR
    assert "a bug in groupscope" in line


def ended_with(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Return the exit code and the one line of a command that raises an error."""

    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setattr(main, "cli", failing)
    code = main.run([])
    (line,) = capsys.readouterr().err.splitlines()
    return code, line
