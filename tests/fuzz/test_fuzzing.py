"""The fuzzer for a bounded time, where it is installed; its harnesses always."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.fuzz import fuzz_questions, fuzz_records, fuzz_segment_reader, fuzz_user_data

DECODERS = [fuzz_segment_reader, fuzz_records, fuzz_user_data]
TARGETS = [*DECODERS, fuzz_questions]
SECONDS = int(os.environ.get("FUZZ_SECONDS", "3"))
"""For each target; `make fuzz` gives it more."""
SPAN_SECONDS = 200
"""So long one process fuzzes; the next one goes on with its corpus.

Functions that atheris has instrumented lose some 100 KB an input (without it they lose none): in a
quarter of an hour that is more than one input may take.
"""
DUMPS = 6
"""Each takes about half a second."""


def name_of(target: ModuleType) -> str:
    return target.__name__.rpartition(".")[2]


def speed_of(printed: str) -> str:
    """Return what libFuzzer says in the end of how much it did."""
    ended = re.search(r"Done (\d+) runs in (\d+) second", printed)
    assert ended, "the fuzzer did not run"
    inputs, seconds = map(int, ended.groups())
    return f"{inputs} inputs in {seconds} s, {inputs / max(seconds, 1):.1f} a second"


@pytest.mark.parametrize("target", DECODERS, ids=name_of)
def test_the_harness_finds_nothing_in_mutated_inputs(target: ModuleType, tmp_path: Path) -> None:
    target.write_corpus(tmp_path)
    corpus = [each.read_bytes() for each in sorted(tmp_path.iterdir())]
    for content in corpus:
        target.look_at(content)
    for seed in range(120):
        draw = random.Random(seed)
        data = bytearray(draw.choice(corpus))
        for _ in range(draw.randint(0, 6)):
            data[draw.randrange(1, len(data))] = draw.randrange(256)
        target.look_at(bytes(data))


def test_questions_end_well_about_made_dumps(tmp_path: Path) -> None:
    fuzz_questions.write_corpus(tmp_path)
    for content in sorted(tmp_path.iterdir())[:DUMPS]:
        fuzz_questions.look_at(content.read_bytes())


@pytest.mark.fuzz
@pytest.mark.parametrize("target", TARGETS, ids=name_of)
def test_the_fuzzer_finds_nothing(
    target: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: `make fuzz` installs it")
    command = [sys.executable, str(target.__file__), str(tmp_path / "corpus")]
    spans = [min(SPAN_SECONDS, SECONDS - begun) for begun in range(0, SECONDS, SPAN_SECONDS)]

    for seconds in spans:
        bounds = [f"-max_total_time={seconds}", "-max_len=65536", "-rss_limit_mb=4096"]
        done = subprocess.run(
            [*command, *bounds, "-timeout=120"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stderr[-4000:]
        assert "ERROR: Failed to instrument" not in done.stderr
        with capsys.disabled():
            print(f"\n{name_of(target)}: {speed_of(done.stderr)}")
