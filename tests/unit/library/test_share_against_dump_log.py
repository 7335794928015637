"""What is left to deliver is what a plain loop over `kafka-dump-log`'s texts says."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.answered_here import answered
from tests.support.dump_folder import bundled_dumps
from tests.support.plain_log import group_settings, metadata_lines, plain_topics, records_of
from tests.support.plain_share import PlainShare

if TYPE_CHECKING:
    from tests.support.answered_here import ReplayedDump
    from tests.support.dump_folder import DumpFolder

DUMPS = [each for each in bundled_dumps() if list(each.root.glob("*/__share_group_state-*"))]


def _ms(value: Any) -> Any:
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group_id"], row["topic_id"], row["partition"]


def _ends(dump: DumpFolder, ids: dict[str, str]) -> dict[tuple[str, int], int]:
    path = dump.root / "tools" / "end-offsets.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (ids[row["topic"]], int(row["partition"])): int(row["log_end_offset"])
            for row in csv.DictReader(file)
            if row["topic"] in ids
        }


@pytest.mark.parametrize("dump", DUMPS, ids=lambda each: each.root.name)
def test_share_partitions_are_as_a_plain_loop_over_the_printed_log_says(
    dump: DumpFolder, replayed_dump: ReplayedDump
) -> None:
    workspace, metadata = replayed_dump(dump), metadata_lines(dump)
    ends = _ends(dump, {each.name: each.topic_id for each in plain_topics(metadata).values()})
    set_ones = group_settings(metadata, "share.delivery.count.limit")
    limits = {group: int(value) for group, value in set_ones.items()}
    options = ["--end-offsets", str(dump.root / "tools" / "end-offsets.csv")] if ends else []
    found = answered(workspace, "share", *options)
    rows, counts, archived = {}, {}, {}
    for log in records_of(dump, "__share_group_state").values():
        plain = PlainShare()
        plain.replay(log)
        rows |= plain.rows(ends, limits)
        counts |= plain.counts()
        archived |= {key: each.archived for key, each in plain.partitions.items() if each.archived}

    backlog = {_key(row): row for row in found["share_backlog"]}
    assert rows
    assert rows.keys() <= backlog.keys()
    differing = {
        (*key, name): (_ms(backlog[key][name]), value)
        for key, wanted in rows.items()
        for name, value in wanted.items()
        if _ms(backlog[key][name]) != value
    }
    assert differing == {}
    for key in backlog.keys() - rows.keys():
        assert backlog[key]["start_offset"] is None
    by_count: dict[Any, Counter[tuple[int, str]]] = defaultdict(Counter)
    for row in found["share_delivery_counts"]:
        by_count[_key(row)][row["delivery_count"], row["delivery_state_name"]] = row["records"]
    assert by_count == counts
    by_offset: dict[Any, dict[int, tuple[int, int]]] = defaultdict(dict)
    for row in found["share_archived_ranges"]:
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            by_offset[_key(row)][offset] = row["record_offset"], row["delivery_count"]
    assert by_offset == archived
