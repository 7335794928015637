"""Dumps with records at the ends of their types come to an end in decoding and replay."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.decoded_here import decoded_here
from tests.support.extreme_records import ExtremeDumps
from tests.support.replayed_here import replayed_here

DUMP = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.4.0-random"


@pytest.mark.long
def test_numbers_at_the_ends_of_their_types_are_replayed(tmp_path: Path) -> None:
    dumps = ExtremeDumps.of(DUMP, tmp_path / "decoded")

    for seed in range(6):
        changed = dumps.made(tmp_path / f"dump-{seed}", random.Random(seed), 12)
        source = decoded_here([str(tmp_path / f"dump-{seed}")], tmp_path / f"rows-{seed}")
        space = replayed_here(source, tmp_path / f"state-{seed}")

        assert space.manifest()["replay"], changed
