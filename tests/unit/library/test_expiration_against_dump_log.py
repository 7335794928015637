"""When offsets expire is what a plain loop over `kafka-dump-log`'s texts says, record by record."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.answered_here import answered
from tests.support.dump_folder import bundled_dumps
from tests.support.plain_expiration import Asked, PlainExpiration
from tests.support.plain_log import records_of

if TYPE_CHECKING:
    from tests.support.answered_here import ReplayedDump
    from tests.support.dump_folder import DumpFolder

DUMPS = bundled_dumps()
ERAS = {
    (2, 0): "pre-2.1",
    (2, 1): "2.1-2.3",
    (2, 4): "2.4-3.1",
    (3, 2): "3.2-3.9",
    (4, 0): "current",
}
RELEASE = "4.3"
"""By whose rules all dumps are replayed: none of the test's has what older ones take otherwise."""
MINUTE = 60_000
INTERVAL = 10 * MINUTE


def _ms(value: Any) -> Any:
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def _asked(dump: DumpFolder) -> list[tuple[str, int]]:
    """Return eras and retentions in minutes: of each dump its own era, and another one."""
    about = json.loads((dump.root / "about.json").read_text("utf-8"))
    major, minor = map(int, about["release"].split(".")[:2])
    own = max(era for era in ERAS if era <= (major, minor))
    other = list(ERAS)[DUMPS.index(dump) % len(ERAS)]
    return [(ERAS[own], 1), (ERAS[own], 10080), (ERAS[other], 1)]


QUICK = (0, 2, 2, 1, 0, 1, 0, 1, 0)
"""Which of these each dump is asked when tests are quick: all eras, and both retentions."""
ASKED = [
    pytest.param(
        dump,
        *asked,
        id=f"{dump.root.name}-{asked[0]}-{asked[1]}",
        marks=() if number == quick else pytest.mark.long,
    )
    for dump, quick in zip(DUMPS, QUICK, strict=True)
    for number, asked in enumerate(_asked(dump))
]


@pytest.mark.parametrize(("dump", "era", "minutes"), ASKED)
def test_every_offset_expires_as_a_plain_loop_over_the_printed_log_says(
    dump: DumpFolder, era: str, minutes: int, replayed_dump: ReplayedDump
) -> None:
    workspace = replayed_dump(dump)
    logs = records_of(dump, "__consumer_offsets")
    now = max(each.timestamp for log in logs.values() for each in log)
    options = "--retention-minutes", str(minutes), "--rules", era
    found = answered(workspace, "expiration", *options)["offset_expiration"]
    expected = {}
    for log in logs.values():
        plain = PlainExpiration(Asked(era, RELEASE, minutes * MINUTE, INTERVAL, now))
        plain.replay(log)
        expected |= plain.rows()
    rows = {(row["group_id"], row["topic"], row["partition"]): row for row in found}
    assert expected
    assert rows.keys() == expected.keys()
    for key, wanted in expected.items():
        row = {name: _ms(rows[key][name]) for name in wanted}
        assert row == wanted, (key, rows[key]["note"])
