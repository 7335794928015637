"""Commands that run in a session that is there, instead of starting and stopping one each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING
from unittest.mock import patch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WHERE_STARTED = (
    "jobs.workspaces.decoding.spark_session",
    "jobs.workspaces.replaying.spark_session",
)


@contextmanager
def commands_in(spark: SparkSession) -> Iterator[None]:
    """Let `decode_into` and `replay_into` run in this session meanwhile."""
    with ExitStack() as stack:
        for place in _WHERE_STARTED:
            stack.enter_context(patch(place, lambda *_, **__: nullcontext(spark)))
        yield
