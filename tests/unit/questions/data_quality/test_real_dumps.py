"""What records of real brokers are decoded to holds what contracts and suites expect."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.questions.data_quality.question import data_quality_of
from tests.support.decoded_here import decoded_here
from tests.support.dump_folder import bundled_dumps

DUMPS = bundled_dumps()


@pytest.mark.parametrize("dump", DUMPS, ids=lambda each: each.root.name)
def test_decoded_tables_of_real_dumps_hold_what_is_expected(dump: object, tmp_path: Path) -> None:
    space = decoded_here([str(dump.root)], tmp_path)  # type: ignore[attr-defined]
    rows = data_quality_of(space, {})

    assert rows.num_rows > 300
    assert [each for each in rows.to_pylist() if each["outcome"] != "passed"] == []
