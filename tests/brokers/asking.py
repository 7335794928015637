"""Questions to a broker in Kafka's own protocol, and its answers as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Protocol, Self

from tests.brokers.programs import Programs

Answer = dict[str, Any]


class NotAnsweredError(Exception):
    """The broker is not there, refuses, or does not know the question."""


class Ask(Protocol):
    """Puts one question: the name of an api, its request, perhaps its version."""

    def __call__(
        self, api: str, request: Mapping[str, Any], version: int | None = None
    ) -> Answer: ...


class Asker:
    """A program that asks the broker at an address, whichever broker that is by then."""

    def __init__(self, programs: Programs, address: str) -> None:
        self._process = subprocess.Popen(
            programs.java("Ask", address),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __call__(self, api: str, request: Mapping[str, Any], version: int | None = None) -> Answer:
        """Ask.

        Raises:
            NotAnsweredError: There is no answer.
        """
        questions, answers = self._pipes()
        question = {"api": api, "version": version, "request": request}
        questions.write(json.dumps(question).encode() + b"\n")
        questions.flush()
        line = answers.readline()
        if not line:
            raise NotAnsweredError("the asking program ended")
        answer: Answer = json.loads(line)
        if "failed" in answer:
            raise NotAnsweredError(f"{api}: {answer['failed']}")
        return answer

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in self._pipes():
            pipe.close()
