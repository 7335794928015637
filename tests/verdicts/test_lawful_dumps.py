"""Real dumps under the law: rows that claim to be complete are as the whole dump has them.

`python -m tests.verdicts.lawful DUMP` does it with every kind of missing evidence, as a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.verdicts.evidence import copied
from tests.verdicts.held import RIGHT, Held
from tests.verdicts.law import hold_law
from tests.verdicts.lawful import audited, filters_of, lawful, replayed, takes_of
from tests.verdicts.test_real_dumps import DUMPS, SMALL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


QUICK = ("cleaned, tombstones gone", "without leader-epoch-checkpoint")
LONG = (
    "cleaned, tombstones kept",
    "without cleaner-offset-checkpoint",
    "one time of the offsets topic far ahead",
    "times stepped back in the metadata log",
)


def _assert_lawful(helds: Mapping[str, Held]) -> None:
    faults = [fault for held in helds.values() for _, fault in held.faults]
    assert not faults, "\n".join(faults[:20])
    assert sum(held.count(RIGHT) for held in helds.values()) > 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(DUMPS / SMALL, tmp_path_factory.mktemp("whole") / "dump")


@pytest.mark.usefixtures("one_session")
def test_state_and_history_are_those_of_the_whole_dump_or_marked(
    whole: Path, tmp_path: Path
) -> None:
    whole_state = replayed(whole, tmp_path / "whole")
    for evidence in QUICK:
        copy = copied(whole, tmp_path / evidence)
        takes_of(copy)[evidence](copy)
        _assert_lawful(hold_law(whole_state, replayed(copy, tmp_path / f"{evidence} replayed")))
    for name, options in filters_of(["by-hand"], ["parcels"]).items():
        part = replayed(whole, tmp_path / name, *options)
        _assert_lawful(hold_law(whole_state, part))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("evidence", LONG)
def test_every_table_of_every_question_is_that_of_the_whole_dump_or_marked(
    evidence: str, whole: Path, tmp_path: Path
) -> None:
    before = audited(whole, tmp_path / "whole")
    _assert_lawful(lawful(DUMPS / SMALL, evidence, tmp_path, before))
