"""What real cleaners left on real brokers is what a pass is said to leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.questions.usage.cleaner import LogSettings
from analytics.questions.usage.tables import usage_tables
from schemas.usage_rules import usage_rules
from tests.support.decoded_here import decoded_here
from tests.support.dump_folder import bundled_dumps

if TYPE_CHECKING:
    from tests.support.dump_folder import DumpFolder

CLEANED = {"kafka-4.3.1-story": 6, "kafka-4.4.0-random": 8}
"""Dumps with logs that the cleaner had just done with, and how many."""
DUMPS = [each for each in bundled_dumps() if each.root.name in CLEANED]
HEADER = 61


@pytest.mark.parametrize("dump", DUMPS, ids=lambda each: each.root.name)
def test_what_a_cleaner_left_is_left_by_the_next_pass(dump: DumpFolder, tmp_path: Path) -> None:
    space = decoded_here([str(dump.root / copy) for copy in dump.copies], tmp_path)
    found = usage_tables(space, space.manifest(), LogSettings(usage_rules()))

    seen = 0
    printed = [each for copy in dump.copies for each in dump.segments(copy)]
    for row in found.cleaning.to_pylist():
        if not row["clean_bytes"] or row["first_dirty_offset"] != row["cleanable_to"]:
            continue
        batches = [
            batch
            for each in printed
            if (each.topic, each.partition) == (row["topic"], row["partition"])
            for batch in each.text.batches
            if batch.last_offset < row["cleanable_to"]
        ]
        records = sum(len(batch.records) for batch in batches if not batch.is_control)
        empty = sum(batch.count == 0 for batch in batches)
        assert row["left_records"] == records
        assert row["freed_bytes"] == HEADER * empty
        seen += 1
    assert seen == CLEANED[dump.root.name]
