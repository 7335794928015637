"""A loop is interpreted until there is enough for it to do; what it finds is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analytics.wire import compiled as module
from analytics.wire.compiled import BYTES, compiled

SUM = """
def total(data, first):
    found = first
    for at in range(len(data)):
        found += data[at]
    return found
"""
DATA = np.arange(200, dtype=np.uint8)


def loop() -> Any:
    """A loop whose source lies in no file, so that there is nowhere to cache it."""
    made: dict[str, Any] = {}
    exec(SUM, made)
    return compiled(f"int64({BYTES}, int64)")(made["total"])


def test_a_loop_is_compiled_once_it_has_read_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTH_COMPILING", 500)
    monkeypatch.setattr(module.Loop, "compiler_is_loaded", False)
    total, expected = loop(), 7 + sum(range(200))
    for _ in range(2):
        assert total(DATA.size, DATA, 7) == expected
    assert total._compiled is None
    assert total(DATA.size, DATA, 7) == expected
    assert total._compiled is not None


def test_once_the_compiler_is_loaded_every_loop_is_compiled_at_once() -> None:
    first, second = loop(), loop()
    assert first.compiled(DATA, 0) == second(DATA.size, DATA, 0)
    assert second._compiled is not None


def test_compiled_it_reads_bytes_that_cannot_be_written_and_such_that_can() -> None:
    total = loop()
    for data in (DATA.copy(), np.frombuffer(DATA.tobytes(), np.uint8)):
        assert total.compiled(data, 0) == total.interpreted(data.data, 0)


def test_an_error_of_the_loop_itself_is_not_hidden() -> None:
    broken = compiled(f"int64({BYTES})")(lambda data: data.nothing)
    with pytest.raises(Exception, match="nothing"):
        _ = broken.compiled
