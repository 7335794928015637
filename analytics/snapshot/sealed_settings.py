"""What logs a client in, on its way to tasks of Spark: it is in no file that Spark may write.

What a task needs is sent in two halves, each of which tells nothing without the other: the secrets
combined with as many random bytes, which are part of the function that Spark sends, and the random
bytes, which are a property of the job. Executors may put the function on their disk where memory is
short (a broadcast), and event logs have properties of jobs; none has both.
"""

from __future__ import annotations

import pickle
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from analytics.snapshot.cluster_connection import ClientSettings

PROPERTY: Final = "groupscope.random-bytes"
"""The local property that has the random bytes."""


@dataclass(frozen=True)
class SealedSettings:
    """Settings of a client, of which the secrets are read in tasks of one job alone.

    Attributes:
        public: Settings without user name, password and the client's own key.
        sealed: These, combined with random bytes.
    """

    public: ClientSettings
    sealed: bytes

    @classmethod
    @contextmanager
    def within(cls, spark: SparkSession, settings: ClientSettings) -> Iterator[Self]:
        """Hand over settings that jobs can open which this thread starts meanwhile."""
        own = None if settings.tls is None else settings.tls.own
        plain = pickle.dumps((settings.username, settings.password, own))
        random_bytes = secrets.token_bytes(len(plain))
        tls = None if settings.tls is None else replace(settings.tls, own=None)
        public = replace(settings, username=None, password=None, tls=tls)
        context: Any = spark.sparkContext
        context.setLocalProperty(PROPERTY, random_bytes.hex())
        try:
            yield cls(public, _combined(plain, random_bytes))
        finally:
            context.setLocalProperty(PROPERTY, None)

    def opened(self) -> ClientSettings:
        """Return the settings as they were, in a task."""
        from pyspark import TaskContext  # noqa: PLC0415 - heavy: only where Spark runs

        task: Any = TaskContext.get()
        random_bytes = bytes.fromhex(task.getLocalProperty(PROPERTY))
        username, password, own = pickle.loads(_combined(self.sealed, random_bytes))  # noqa: S301 - ours
        tls = None if self.public.tls is None else replace(self.public.tls, own=own)
        return replace(self.public, username=username, password=password, tls=tls)


def _combined(content: bytes, random_bytes: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(content, random_bytes, strict=True))
