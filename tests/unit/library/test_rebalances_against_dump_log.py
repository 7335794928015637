"""Epochs of groups are those that a plain loop over `kafka-dump-log`'s texts finds."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.answered_here import answered
from tests.support.dump_folder import bundled_dumps
from tests.support.plain_log import records_of
from tests.support.plain_rebalances import PlainRebalances

if TYPE_CHECKING:
    from tests.support.answered_here import ReplayedDump
    from tests.support.dump_folder import DumpFolder

TOPIC = "__consumer_offsets"
Rows = dict[Any, dict[str, Any]]
DUMPS = bundled_dumps()


def _ms(value: Any) -> Any:
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


@pytest.mark.parametrize("dump", DUMPS, ids=lambda each: each.root.name)
def test_epochs_are_those_that_a_plain_loop_over_the_printed_log_finds(
    dump: DumpFolder, replayed_dump: ReplayedDump
) -> None:
    found = answered(replayed_dump(dump), "rebalances")
    cleaned = {
        place: end for copy in dump.copies for place, end in dump.cleaned_until(copy).items()
    }
    rows: Rows = {}
    churn: Rows = {}
    for number, log in records_of(dump, TOPIC).items():
        plain = PlainRebalances(cleaned.get((TOPIC, number), 0))
        plain.replay(log)
        rows |= plain.rows()
        churn |= plain.churn()

    assert rows
    epochs = {(row["group_id"], row["from_offset"]): row for row in found["rebalances"]}
    groups = {row["group_id"]: row for row in found["group_churn"]}
    assert epochs.keys() == rows.keys()
    assert groups.keys() == churn.keys()
    assert {**_differing(epochs, rows), **_differing(groups, churn)} == {}


def _differing(found: Rows, expected: Rows) -> dict[Any, Any]:
    """Return by key and column what was found, and what was expected; null may be compacted."""
    return {
        (key, name): (_ms(found[key][name]), value)
        for key, row in expected.items()
        for name, value in row.items()
        if _ms(found[key][name]) != value
        and not (name == "missing_before" and found[key]["missing_is_compacted"])
    }
