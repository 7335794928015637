"""The fuzzer for a bounded time, where it is installed; its harness always."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.fuzz_segment_reader import MODES, look_at
from tests.support.segments import joined, random_segment

HARNESS = Path(__file__).with_name("fuzz_segment_reader.py")
SECONDS = int(os.environ.get("FUZZ_SECONDS", "60"))


def test_the_harness_finds_nothing_in_mutated_segments() -> None:
    for seed in range(400):
        draw = random.Random(seed)
        data = bytearray(joined(random_segment(seed % 40, batches=4)))
        for _ in range(draw.randint(0, 6)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        look_at(bytes([seed % MODES]) + data)


@pytest.mark.fuzz
def test_the_fuzzer_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: `make fuzz` installs it")
    command = [sys.executable, str(HARNESS), str(tmp_path / "corpus")]
    bounds = [f"-max_total_time={SECONDS}", "-max_len=65536", "-rss_limit_mb=4096", "-timeout=60"]

    done = subprocess.run(
        [*command, *bounds], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-4000:]
