"""The JVM's heap fits the machine, or the container, that it runs in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.spark import session as machine


def test_a_containers_limit_counts_where_it_is_less_than_the_machine(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(f"{300 * 1024 * 1024}\n")
    assert machine.memory_megabytes(limit) == 300


@pytest.mark.parametrize("content", ["max\n", f"{1 << 60}\n", ""])
def test_without_a_limit_the_machines_memory_counts(tmp_path: Path, content: str) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(content)
    machines = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1024 * 1024)
    assert machine.memory_megabytes(limit) == machines


@pytest.mark.parametrize(
    ("memory", "cores", "heap"),
    [(2_048, 2, 1_024), (16_384, 4, 6_280), (262_144, 32, 8_192)],
)
def test_the_heap_is_half_of_what_workers_leave_within_bounds(
    monkeypatch: pytest.MonkeyPatch, memory: int, cores: int, heap: int
) -> None:
    monkeypatch.setattr(machine, "memory_megabytes", lambda: memory)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert machine.heap_megabytes() == heap
