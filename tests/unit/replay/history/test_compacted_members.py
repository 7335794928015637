"""What is concluded of members from a compacted log is said of the whole log, or marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, groupby
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from analytics.replay.history.group_history import group_history, group_steps
from analytics.replay.log.losses import WHOLE
from analytics.replay.log.rules import replay_rules
from tests.support.history_log import Written, history_rows, rows_by_group, topic_names
from tests.support.reference_offsets import GroupRecord
from tests.support.scripted_groups import (
    TOPIC,
    TOPIC_ID,
    Record,
    Scripted,
    classic_group,
    consumer_group,
)

OFFSETS = "__consumer_offsets"
GROUPS, ACTS = 120, 24
FAR = 10_000
"""Where the second log of each group lies: the same one, compacted."""

Log = list[tuple[int, Record]]


def compacted(records: Log, cleaned_until: int, random: Random) -> Log:
    """Leave the last record of each key below an offset; tombstones may be gone as well."""
    last = {
        (record.table, *sorted(record.key.items())): offset
        for offset, record in records
        if offset < cleaned_until
    }
    kept = []
    for offset, record in records:
        is_last = last.get((record.table, *sorted(record.key.items()))) == offset
        is_gone = record.value is None and random.random() < 0.3
        if offset >= cleaned_until or (is_last and not is_gone):
            kept.append((offset, record))
    return kept


def written(logs: dict[int, Log]) -> Iterator[Written]:
    for partition, log in logs.items():
        for offset, each in log:
            record = GroupRecord(partition, offset, each.table, each.key, each.value)
            yield Written(record, each.batch)


def with_commits(script: Scripted) -> Scripted:
    """Let a commit follow each batch: what the cleaner left last is of something else."""
    records: list[Record] = []
    of = {"group": script.group, "topic": TOPIC, "partition": 0}
    for number, batch in groupby(script.records, key=lambda record: record.batch):
        first = len(records)
        records += [replace(record, batch=first) for record in batch]
        records.append(Record("offset_commit", of, {"offset": number}, len(records)))
    return replace(script, records=records)


class Found:
    """Changes of members, epochs and events of groups, in each log."""

    def __init__(self) -> None:
        """Compact logs of random groups at random offsets, and replay both."""
        self.scripts: dict[int, Scripted] = {}
        self.cleaned: dict[int, int] = {}
        logs: dict[int, Log] = {}
        played = [consumer_group(f"consumer-{seed}", seed, ACTS) for seed in range(GROUPS)]
        played += [classic_group(f"classic-{seed}", seed, ACTS // 2) for seed in range(GROUPS)]
        for number, script in enumerate(with_commits(each) for each in played if each.records):
            random = Random(number)
            whole = list(enumerate(script.records))
            self.scripts[number], logs[number] = script, whole
            # The cleaner takes whole segments: it stops between two batches.
            self.cleaned[number] = random.choice([len(whole), *(r.batch for r in script.records)])
            short = compacted(whole, self.cleaned[number], random)
            logs[number + FAR] = [(offset, _renamed(record)) for offset, record in short]
        # Several partitions share a number: the index of `Coverage` is by partition.
        where = {number: place for place, number in enumerate(sorted(logs))}
        told = {
            (OFFSETS, where[number + FAR]): end
            for number, end in self.cleaned.items()
            if len(logs[number + FAR]) < len(logs[number])
        }
        placed = {where[number]: log for number, log in logs.items()}
        coverage = replace(WHOLE, uncompacted_from=told, cleaned_until=told)
        rows = history_rows(written(placed))
        names = topic_names({TOPIC_ID: TOPIC})
        rules = replay_rules("4.2")
        made = group_history(group_steps(rows, rules), rows, names, rules, coverage)
        self.changes = rows_by_group(made["membership_changes"])
        self.epochs = rows_by_group(made["group_epochs"])
        self.events = rows_by_group(made["events"])


def _renamed(record: Record) -> Record:
    return replace(
        record,
        key=record.key
        | {
            name: f"{record.key[name]} compacted"
            for name in ("group", "group_id")
            if name in record.key
        },
    )


@pytest.fixture(scope="module")
def found() -> Found:
    return Found()


def test_what_is_not_marked_happened_just_so(found: Found) -> None:
    sure = marked = 0
    for script in found.scripts.values():
        told = {_said(script, row) for row in found.changes[script.group]}
        for row in found.changes[f"{script.group} compacted"]:
            if row.before_is_compacted:
                marked += 1
            else:
                sure += 1
                assert _said(script, row) in told, (script.group, row)
    assert marked > GROUPS
    assert sure > GROUPS


@pytest.mark.parametrize(("cleaned", "is_told"), [(0, True), (1, True), (3, False), (9, False)])
def test_what_a_tombstone_took_over_is_told_where_nothing_of_its_group_may_be_gone(
    cleaned: int, *, is_told: bool
) -> None:
    of, member = {"group": "g", "topic": TOPIC, "partition": 0}, {"group_id": "g", "member_id": "m"}
    log: Log = [
        (0, Record("offset_commit", of, {"offset": 1}, 0)),
        (2, Record("consumer_group_member_metadata", member, None, 2)),
    ]
    told = {(OFFSETS, 0): cleaned}
    coverage = replace(WHOLE, uncompacted_from=told, cleaned_until=told)
    rows, rules = history_rows(written({0: log})), replay_rules("4.2")
    made = group_history(group_steps(rows, rules), rows, topic_names({}), rules, coverage)
    (epoch,) = rows_by_group(made["group_epochs"])["g"]
    assert epoch.missing_is_compacted is not is_told
    events = {each.event: each.detail for each in rows_by_group(made["events"])["g"]}
    assert events.get("converted") == ("simple to consumer" if is_told else None)
    assert ("what was before it is compacted" in events["epoch"]) is not is_told


def _said(script: Scripted, row: SimpleNamespace) -> tuple[Any, ...]:
    batch = script.records[row.record_offset].batch
    return row.change, row.member_id, batch, row.epoch, tuple(row.gained), tuple(row.lost)


def test_who_is_marked_was_there_by_then_with_what_it_gained(found: Found) -> None:
    for script in found.scripts.values():
        for row in found.changes[f"{script.group} compacted"]:
            if not row.before_is_compacted:
                continue
            there = _members(found.changes[script.group], row.record_offset)
            assert row.change in {"joined", "assignment_changed"}
            assert set(row.gained) <= there[row.member_id], (script.group, row)


def _members(changes: list[SimpleNamespace], offset: int) -> dict[str, set[str]]:
    """Return who was there and with what, from the record at an offset on."""
    there: dict[str, set[str]] = {}
    for row in sorted(changes, key=lambda row: (row.record_offset, row.change != "left")):
        if row.record_offset > offset:
            break
        if row.change == "left":
            del there[row.member_id]
        else:
            held = there.setdefault(row.member_id, set())
            held -= set(row.lost)
            held |= set(row.gained)
    return there


def test_nothing_is_marked_where_the_cleaner_has_not_been(found: Found) -> None:
    for number, script in found.scripts.items():
        assert not any(row.before_is_compacted for row in found.changes[script.group])
        dirty = [
            row
            for row in found.changes[f"{script.group} compacted"]
            if row.record_offset >= found.cleaned[number]
        ]
        assert not any(row.before_is_compacted for row in dirty), script.group


def test_epochs_that_begin_where_the_cleaner_has_not_been_are_those_of_the_whole_log(
    found: Found,
) -> None:
    same = skipping = 0
    for number, script in found.scripts.items():
        told = {_counted(row) for row in found.epochs[script.group]}
        for row in found.epochs[f"{script.group} compacted"]:
            if row.from_offset >= found.cleaned[number]:
                assert _counted(row) in told, (script.group, row)
                same += 1
                skipping += row.missing_before > 0
    assert same > GROUPS
    assert skipping > GROUPS // 4


def test_how_many_epochs_left_no_record_is_told_beside_the_counts(found: Found) -> None:
    told = [
        row.detail
        for row in chain.from_iterable(found.events.values())
        if row.event == "generation" and "left no record" in row.detail
    ]
    assert told
    for detail in told:
        assert re.fullmatch(r"\d members, [^;]+; \d+ before it left no record", detail)


def _counted(row: SimpleNamespace) -> tuple[Any, ...]:
    compared = row.members_joined, row.members_left, row.partitions_moved, row.missing_before
    return row.epoch, row.from_offset, row.member_count, *compared


def test_a_group_is_created_where_its_first_record_is_sure_to_be_the_first(found: Found) -> None:
    born = unborn = 0
    for script in found.scripts.values():
        created, still = (_created(found, script, name) for name in ("", " compacted"))
        assert still <= created, script.group
        born, unborn = born + len(still), unborn + len(created - still)
    assert min(born, unborn) > GROUPS // 2


def _created(found: Found, script: Scripted, name: str) -> set[int]:
    rows = found.events[f"{script.group}{name}"]
    return {script.records[row.record_offset].batch for row in rows if row.event == "created"}
