"""`groupscope lag` held against what Kafka's own tools and brokers said, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import COMMAND
from tests.support.lag_check import compared, held_against_output, outputs

if TYPE_CHECKING:
    from tests.conftest import Groupscope

DATA = Path(__file__).parents[1] / "data"
FAILOVER = DATA / "dumps" / "kafka-4.3.1-failover"
LEFT_MEANWHILE = "parcel-router"
"""The tools ran before the members of this group timed out; the logs go on until after that."""

ROWS = {
    "dumps/kafka-2.0.1-v1": (91, 91),
    "dumps/kafka-3.9.2-classic": (22, 22),
    "dumps/kafka-4.0.2-share": (156, 156),
    "dumps/kafka-4.2.1-share": (2, 2),
    # Rows of groups that only the whole dump has, whose names have line breaks and end in blanks.
    "dumps/kafka-4.3.1-foreign": (144, 148),
    "dumps/kafka-4.3.1-story": (6, 6),
    "dumps/kafka-upgrade-2.0.1-to-3.9.2": (49, 49),
    "expiry/kafka-4.3.1-expiry": (62, 62),
}
"""Rows that are equal, and all, of each dump that is bundled without its data topics."""


def test_every_number_equals_what_kafkas_tools_printed(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    total = 0
    for file in outputs(FAILOVER):
        options = ("--against", file, "--exclude-group", LEFT_MEANWHILE, "--quiet")
        result = groupscope("lag", failover_workspace, *options)
        held = held_against_output(result.stdout, file.name)
        assert (held.equal, result.returncode) == (held.total, 0), held.line()
        assert held.remarks == []
        total += held.total
    assert total == 72 * 2 + 3 * 2


def test_a_number_that_differs_is_shown_and_ends_with_code_1(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    (file,) = [each for each in outputs(FAILOVER) if each.stem == "consumer-groups-offsets"]
    text = file.read_text(encoding="utf-8")
    line = next(each for each in text.splitlines() if each.startswith("address-book "))
    saved = tmp_path / "saved.txt"
    saved.write_text(text.replace(line, line.replace("199", "198")), encoding="utf-8")
    options = ("--against", saved, "--group", "address-book", "--quiet")
    result = groupscope("lag", failover_workspace, *options)
    assert result.returncode == 1
    assert "address-book parcels 0 -  LAG     198           199" in result.stdout


def test_what_is_not_about_offsets_cannot_be_compared(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    for name in ("consumer-groups-state.txt", "share-groups-offsets.txt"):
        file = FAILOVER / "tools" / "describe" / name
        result = groupscope("lag", failover_workspace, "--against", file)
        assert result.returncode == 3
        assert "has no offsets of consumer or streams groups" in result.stderr


@pytest.mark.long
@pytest.mark.parametrize("dump", sorted(ROWS))
def test_every_number_of_a_bundled_dump_equals_what_kafkas_tools_printed(
    dump: str, tmp_path: Path
) -> None:
    """Data topics were left out: where logs ended is what the brokers said then."""
    helds = list(compared(DATA / dump, tmp_path, str(COMMAND)))
    counts = sum(each.equal for each in helds), sum(each.total for each in helds)
    assert counts == ROWS[dump], [each.line() for each in helds]
