"""One Spark session for all replays of these tests: none starts its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module", autouse=True)
def _session_stays_open() -> Iterator[None]:
    """Let no command stop the session, those of module fixtures, which `one_session` is not for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.spark.session._stop", lambda _: None)
        yield


@pytest.fixture
def one_session(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """Let commands that run in this process use the session of the tests, and leave it open."""

    @contextmanager
    def shared(*_: Any, **__: Any) -> Iterator[SparkSession]:
        yield spark

    for module in ("spark.session", "runs.decode.run", "runs.replay.run"):
        monkeypatch.setattr(f"jobs.{module}.spark_session", shared)
