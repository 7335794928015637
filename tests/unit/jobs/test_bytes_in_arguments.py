"""Bytes of a command line that are no UTF-8: refused, and no harm to what keeps a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli.exit_codes import CALLED_WRONGLY
from jobs.cli.main import keep_traceback, run


@pytest.mark.parametrize(
    "arguments", [["describe", "x", "--group", "\udcff"], ["inspect", "a\udcff"]]
)
def test_bytes_that_are_no_utf8_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == CALLED_WRONGLY
    assert "is not UTF-8" in capsys.readouterr().err


def test_a_traceback_is_kept_whatever_bytes_the_command_line_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = keep_traceback(ValueError("\udcff"), ["describe", "--group", "\udcff"])
    assert "internal error" in kept
    (file,) = tmp_path.iterdir()
    assert "\\udcff" in file.read_text(encoding="utf-8")
