"""The truth about a dump: what happened to its offsets, by those who did it.

`python -m tests.verdicts.truth DUMP` writes it to `tests/verdicts/data/`, and fails where it does
not agree with what the coordinators answered last: then something was done that nobody told.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.verdicts.happened import (
    EXPIRED,
    LOST,
    NOTHING,
    OF_CAUSES,
    Happening,
    History,
    Removal,
    Values,
    history_of,
    two_lines,
)
from tests.verdicts.members import members_of
from tests.verdicts.witness import Act, Key, acts_of

DATA = Path(__file__).parent / "data"
STEP_MS = 1000
"""Instants asked about lie on whole seconds, at which nothing was under way."""
INSTANTS = 6
STOPS = {"broker-stopping", "broker-killed"}
NO_MARKER = {"billing-tx-gone", "billing-tx-last"}
"""Producers of the failover that were told their commit is done, and whose brokers died before the
markers were written: `about.json` tells of them."""
Offsets = Mapping[Key, int]
STAYED_PENDING = {("retired-3.9", "orders", 2)}
"""Of which `removals.json` of the upgrade names a commit whose transaction was still open."""


@dataclass(frozen=True)
class Truth:
    """What is known of a dump.

    Attributes:
        dump: Its name.
        told: All of it, as it is written.
    """

    dump: str
    told: Mapping[str, Any]

    @cached_property
    def happenings(self) -> list[Happening]:
        """What happened, in no order."""
        return [
            Happening(
                (each["group_id"], each["topic"], each["partition"]),
                each["what"],
                (each["at"][0], each["at"][1]),
                frozenset(each["was"]),
                frozenset(each["became"]),
                each["certain"],
                each["on_lost_line"],
            )
            for each in self.told["happenings"]
        ]

    @cached_property
    def witnessed(self) -> frozenset[str]:
        """Groups all of whose commits somebody told."""
        return frozenset(self.told["witnessed"])

    @cached_property
    def instants(self) -> dict[int, dict[Key, Values]]:
        """What may have been in force at some instants; at the last one by the brokers' answer."""
        return {
            each["at"]: {(row[0], row[1], row[2]): frozenset(row[3]) for row in each["offsets"]}
            for each in self.told["instants"]
        }

    @cached_property
    def groups_lost(self) -> frozenset[str]:
        """Groups that only a line of history had which did not survive."""
        return frozenset(self.told["groups_lost"])

    @cached_property
    def groups_deleted(self) -> dict[str, list[tuple[int, int]]]:
        """When groups were deleted whose members committed without a word."""
        return {
            group: [(low, high) for low, high in spans]
            for group, spans in self.told["groups_deleted"].items()
        }

    @cached_property
    def share_lost(self) -> dict[Key, tuple[int | None, int | None]]:
        """Start offsets of share partitions whose state an election took: before and after."""
        return {
            (row[0], row[1], row[2]): (row[3], row[4]) for row in self.told.get("share_lost", ())
        }

    @cached_property
    def ever(self) -> frozenset[Key]:
        """Offsets that somebody committed, or began to."""
        return self._keys("ever")

    @cached_property
    def staged(self) -> frozenset[Key]:
        """Offsets of which a transaction was open in the end."""
        return self._keys("staged")

    @cached_property
    def deleted_records(self) -> frozenset[Key]:
        """Offsets in force whose records were deleted."""
        return self._keys("deleted_records")

    def _keys(self, name: str) -> frozenset[Key]:
        return frozenset((row[0], row[1], row[2]) for row in self.told[name])

    @cached_property
    def end(self) -> dict[Key, int | None]:
        """What the coordinators answered last."""
        return {(row[0], row[1], row[2]): row[3] for row in self.told["end"]}

    @cached_property
    def end_values(self) -> dict[Key, Values]:
        """The same, and of groups of which all is known what was gone in the end."""
        gone = {key: NOTHING for key in self.ever if key[0] in self.witnessed}
        return {**gone, **{key: frozenset({offset}) for key, offset in self.end.items()}}

    @property
    def members(self) -> Mapping[str, Any]:
        """Who was in groups, as `members_of` tells it."""
        told: Mapping[str, Any] = self.told["members"]
        return told

    def sizes(self, at: int | None) -> Mapping[str, Sequence[int]]:
        """How many partitions members had at an instant; None: in the end."""
        told: Mapping[str, Sequence[int]] = self.members["end"]
        if at is not None:
            told = next(each["groups"] for each in self.members["sizes"] if each["at"] == at)
        return told

    @cached_property
    def elected(self) -> int:
        """Before when nothing was lost by an election."""
        return min(each.at[0] for each in self.happenings if each.what == LOST)

    def with_happenings(self, happenings: list[Happening]) -> Truth:
        """Return the same with other happenings."""
        other = Truth(self.dump, self.told)
        other.__dict__.update(self.__dict__, happenings=happenings)
        return other

    def with_end(self, end: dict[Key, int | None]) -> Truth:
        """Return the same with another end; what was open or deleted then is not known."""
        other = Truth(self.dump, {**self.told, "staged": self.told["ever"]})
        other.__dict__.update(happenings=self.happenings, end=end)
        return other


def read_truth(dump: str) -> Truth:
    """Read what was written down about a dump."""
    data = gzip.decompress((DATA / f"{dump}.json.gz").read_bytes())
    return Truth(dump, json.loads(data))


def truth_of(folder: Path) -> dict[str, Any]:
    """Make the truth about a dump of what was told while it was made.

    Raises:
        ValueError: The coordinators answered what nobody did.
    """
    acts = acts_of(folder / "timeline.jsonl")
    streams = _streams_groups(folder)
    end = _answered(folder / "tools" / "state.json.gz")
    removals = _removals(folder)
    if (folder / "tools" / "divergence.json").exists():
        history = _failover(folder, acts)
    else:
        history = history_of(acts, removals)
    witnessed = {key[0] for key in history.lives} - streams
    if removals:
        _cleaned_away(history, end, acts[-1].at[1])
    wrong = {
        key: (sorted(map(str, values)), end.get(key))
        for key in history.lives
        if key[0] in witnessed and end.get(key) not in (values := history.lives[key].values)
    }
    if wrong or {key for key in end if key[0] in witnessed} - history.lives.keys():
        raise ValueError(f"{folder.name}: answered otherwise than told: {wrong}")
    instants = _quiet_times(acts)
    return {
        "dump": folder.name,
        "witnessed": sorted(witnessed),
        "happenings": [
            {
                **dict(zip(("group_id", "topic", "partition"), each.key, strict=True)),
                "what": each.what,
                "at": list(each.at),
                "was": _sorted(each.was),
                # Where a Streams group went on nobody told.
                "became": [] if _is_untold(each, witnessed) else _sorted(each.became),
                "certain": each.is_certain,
                "on_lost_line": each.on_lost_line,
            }
            for each in sorted(history.happenings, key=lambda each: (each.key, each.at, each.what))
        ],
        "instants": [{"at": at, "offsets": _all_at(history, at, witnessed)} for at in instants],
        "end": [[*key, value] for key, value in sorted(end.items())],
        "ever": sorted(map(list, history.lives)),
        "groups_lost": _groups_lost(folder),
        "groups_deleted": _groups_deleted(acts, streams),
        # A coordinator before 4.0 that loads the log again has pending what another one dropped.
        "staged": sorted(
            list(key)
            for key, life in history.lives.items()
            if life.staged or (life.dropped and _comes_back(folder))
        ),
        "share_lost": _share_lost(folder),
        "members": members_of(folder, instants),
        "deleted_records": _below_the_log_start(folder, end),
    }


def _comes_back(folder: Path) -> bool:
    about = json.loads((folder / "about.json").read_text("utf-8"))
    return int(about["release"].partition(".")[0]) < 4


def _groups_deleted(acts: Iterable[Act], streams: set[str]) -> dict[str, list[list[int]]]:
    """Return when groups were deleted of which nobody told what they had committed."""
    found: dict[str, list[list[int]]] = {}
    for act in acts:
        if act.kind == "group_deleted" and act.group in streams:
            found.setdefault(act.group, []).append(list(act.at))
    return found


def _groups_lost(folder: Path) -> list[str]:
    """Return groups that only a line of history had which did not survive."""
    about = json.loads((folder / "about.json").read_text("utf-8"))
    return list(about.get("groups_with_records_only_on_the_dead_disk", ()))


def _share_lost(folder: Path) -> list[list[Any]]:
    """Return share partitions of which coordinators answered otherwise on the two lines."""
    if not (folder / "tools" / "divergence.json").exists():
        return []
    before = _share_states(folder / "tools" / "state-before.json.gz")
    after = _share_states(folder / "tools" / "replay" / "broker-2-01" / "state.json.gz")
    nothing: tuple[int | None, list[Any]] = (None, [])
    return sorted(
        [*key, state[0], after.get(key, nothing)[0]]
        for key, state in before.items()
        if state != after.get(key, nothing)
    )


def _share_states(path: Path) -> dict[Key, tuple[int | None, list[Any]]]:
    state = json.loads(gzip.decompress(path.read_bytes()))
    rows = [(_key(row), row["state"]) for row in state["share_partitions"] if row.get("state")]
    return {
        key: (None if told["startOffset"] < 0 else told["startOffset"], told["stateBatches"])
        for key, told in rows
    }


def _below_the_log_start(folder: Path, end: Offsets) -> list[list[Any]]:
    """Return offsets whose records were deleted, by the log starts that brokers answered."""
    rows = json.loads((folder / "tools" / "end-offsets.json").read_text("utf-8"))
    starts = {name: each["start"] for name, each in rows.items()}
    return sorted(
        [*key] for key, offset in end.items() if offset < starts.get(f"{key[1]}-{key[2]}", 0)
    )


def _cleaned_away(history: History, end: Offsets, last: int) -> None:
    """Take away what was gone in the end though no tombstone is left: the cleaner took both.

    Why it went is not known: that it expired may be said, and need not.
    """
    for key, life in history.lives.items():
        if key not in end and None not in life.values:
            at = life.past[-1][0][1], last
            gone = Happening(key, EXPIRED, at, life.values, NOTHING, is_certain=False)
            history.happenings.append(gone)
            life.becomes(NOTHING, at, life.since)


def _is_untold(happening: Happening, witnessed: set[str]) -> bool:
    return happening.what == LOST and happening.key[0] not in witnessed


def _sorted(values: Values) -> list[int | None]:
    return sorted(values, key=lambda value: -1 if value is None else value)


def _all_at(history: History, at: int, witnessed: Iterable[str]) -> list[list[Any]]:
    wanted = set(witnessed)
    return [
        [*key, _sorted(history.possible_at(key, at))]
        for key in sorted(history.lives)
        if key[0] in wanted
    ]


def _quiet_times(acts: list[Act]) -> list[int]:
    """Choose whole seconds spread over the dump at which fewest acts were under way."""
    first, last = acts[0].at[0], acts[-1].at[1]
    width = (last - first) // (INSTANTS + 1)
    found = []
    for number in range(1, INSTANTS + 1):
        middle = first + number * width
        near = range(middle - width // 4, middle + width // 4, STEP_MS)
        found.append(
            min(
                near,
                key=lambda at: sum(act.at[0] <= at <= act.at[1] and act.is_certain for act in acts),
            )
            // STEP_MS
            * STEP_MS
        )
    return found


def _streams_groups(folder: Path) -> set[str]:
    """Return groups whose members committed without a word."""
    lines = (folder / "timeline.jsonl").read_text("utf-8").splitlines()
    events = map(json.loads, lines)
    return {event["group"] for event in events if event["event"] == "streams-opened"}


def _answered(path: Path) -> Offsets:
    state = json.loads(gzip.decompress(path.read_bytes()))
    found: dict[Key, int] = {_key(row): row["offset"] for row in state["committed_offsets"]}
    return {key: offset for key, offset in found.items() if offset >= 0}


def _key(row: Mapping[str, Any]) -> Key:
    return row["group_id"], row["topic"], row["partition"]


def _removals(folder: Path) -> list[Removal]:
    path = folder / "tools" / "removals.json"
    if not path.exists():
        return []
    rows = json.loads(path.read_text("utf-8"))["offset_tombstones"]
    lines = (folder / "timeline.jsonl").read_text("utf-8").splitlines()
    return removals_in(rows, map(json.loads, lines))


def removals_in(
    rows: Sequence[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]
) -> list[Removal]:
    """Return the tombstones of `removals.json`; brokers of the timeline wrote none once stopped."""
    stops = [event["at"] for event in events if event["event"] in STOPS]
    last = max(stops, default=0)
    return [
        Removal(
            (row["group"], row["topic"], row["topic_partition"]),
            OF_CAUSES[row["cause"]],
            _span(row, rows, last),
            _removed_offset(row),
            bool(row.get("removed_pending")),
        )
        for row in rows
    ]


def _removed_offset(row: Mapping[str, Any]) -> int | None:
    if (row["group"], row["topic"], row["topic_partition"]) in STAYED_PENDING:
        return None
    found: int | None = (row["removed"] or {}).get("committed_offset")
    return found


def _span(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], last: int) -> tuple[int, int]:
    """Return when a tombstone was written.

    Message format 0 has no times but its neighbours', and none was written in it after the broker
    was stopped for the last time.
    """
    if row["append_time"] is not None:
        return row["append_time"], row["append_time"]
    beside = [
        (each["offset"], each["append_time"])
        for each in rows
        if each["partition"] == row["partition"] and each["append_time"] is not None
    ]
    before = [time for offset, time in beside if offset < row["offset"]]
    after = [time for offset, time in beside if offset > row["offset"]]
    committed = (row["removed"] or {}).get("commit_timestamp", 0)
    return max([*before, committed]), min([*after, last])


def _failover(folder: Path, acts: list[Act]) -> History:
    """The dead broker led alone between two marks; then the others, with what they had before."""
    marks = json.loads((folder / "about.json").read_text("utf-8"))["phases_ms"]
    lines = (folder / "timeline.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    unclean = {
        each["partition"]: each["at"]
        for each in events
        if each["event"] == "election" and each["type"] == "UNCLEAN"
    }
    alone, elected = marks["B begins"], min(unclean.values())
    acts = [act for act in acts if not (act.kind == "settled" and act.names[0] in NO_MARKER)]
    before = _answered(folder / "tools" / "state-before.json.gz")
    after = _answered(folder / "tools" / "replay" / "broker-2-01" / "state.json.gz")
    diverged = {
        each["partition"]
        for each in json.loads((folder / "tools" / "divergence.json").read_text("utf-8"))
        if each["relation"] in {"diverged", "survivor is a prefix"}
    }
    homes = {
        key: f"__consumer_offsets-{home_of(key[0], OFFSETS_PARTITIONS)}"
        for key in {*before, *after}
    }
    return two_lines(
        [act for act in acts if act.answered < alone],
        [act for act in acts if alone <= act.answered < elected],
        [act for act in acts if act.answered >= elected],
        before,
        after,
        {
            key: (elected - STEP_MS, unclean[home] + STEP_MS)
            for key, home in homes.items()
            if home in diverged
        },
    )


OFFSETS_PARTITIONS = 10
"""How many partitions the offsets topic of the dumps has."""


def home_of(group: str, partitions: int) -> int:
    """Return the offsets partition of a group, as Kafka computes it of Java's hash."""
    units = group.encode("utf-16-be")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def write_truth(folder: Path) -> Path:
    """Make the truth about a dump and write it down."""
    told = truth_of(folder)
    path = DATA / f"{folder.name}.json.gz"
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(write_truth(Path(each)))
