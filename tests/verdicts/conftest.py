"""One Spark session for all replays of these tests: none starts its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def one_session(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """Let commands that run in this process use the session of the tests, and leave it open."""

    @contextmanager
    def shared(*_: Any, **__: Any) -> Iterator[SparkSession]:
        yield spark

    for module in ("spark.session", "workspaces.decoding", "workspaces.replaying"):
        monkeypatch.setattr(f"jobs.{module}.spark_session", shared)
