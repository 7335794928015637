"""How even assignments are is what a plain loop over `kafka-dump-log`'s texts says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.answered_here import answered
from tests.support.dump_folder import bundled_dumps
from tests.support.plain_coordinator import PlainCoordinator
from tests.support.plain_group_balance import plain_balances
from tests.support.plain_log import metadata_lines, plain_topics, records_of

if TYPE_CHECKING:
    from tests.support.answered_here import ReplayedDump
    from tests.support.dump_folder import DumpFolder

DUMPS = bundled_dumps()
RELEASE = "4.3"
WITHOUT_SCORE = {"unsettled", "cannot_tell"}


def _rounded(value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize("dump", DUMPS, ids=lambda each: each.root.name)
def test_every_group_is_as_even_as_a_plain_loop_over_the_printed_log_says(
    dump: DumpFolder, replayed_dump: ReplayedDump
) -> None:
    workspace, topics = replayed_dump(dump), plain_topics(metadata_lines(dump))
    found = answered(workspace, "balance")["assignment_balance"]
    rows = {row["group_id"]: row for row in found}
    expected = {}
    for log in records_of(dump, "__consumer_offsets").values():
        coordinator = PlainCoordinator(RELEASE)
        for record in log:
            coordinator.replay(record)
        expected |= plain_balances(coordinator, topics)

    assert rows.keys() == expected.keys()
    differing = {}
    for group, wanted in expected.items():
        row = rows[group]
        if row["verdict"] in WITHOUT_SCORE:
            wanted["score"] = None
        for name, value in wanted.items():
            if _rounded(row[name]) != _rounded(value):
                differing[group, name] = row[name], value, row["verdict"], row["cause"]
    assert differing == {}
