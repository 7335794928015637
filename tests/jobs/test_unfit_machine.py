"""A machine that Spark cannot start on: one line that says why, and no error of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Groupscope


@pytest.mark.parametrize(
    ("memory", "why"),
    [
        ("lots", "Invalid maximum heap size: -Xmxlots"),
        pytest.param("16m", "OutOfMemoryError: Java heap space", marks=pytest.mark.long),
        ("100m", "must be at least 471859200"),
    ],
)
def test_memory_that_is_none_or_too_little(
    installed: Groupscope, failover_dump: Path, tmp_path: Path, memory: str, why: str
) -> None:
    conf = f"spark.driver.memory={memory}"
    ran = installed("decode", str(failover_dump), "--out", str(tmp_path / "o"), "--conf", conf)
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout == ""
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("groupscope: Spark did not start: ")
    assert why in last
    assert "Traceback" not in ran.stderr
