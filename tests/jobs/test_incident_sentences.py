"""Sentences of incidents, held against what clients did while the dump was made.

Every clause of every sentence is of a form that is held. `read_truth` has what `timeline.jsonl` and
`removals.json` tell of offsets, `tests/verdicts/incidents.py` counts what the timeline tells of the
rest. Each offset that an answer judges, or says was removed, has to match something that happened;
whatever surely happened has to be in a sentence; numbers are counted anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from analytics import open_dump
from reports.incident_summary import restored_of, sentences_of
from tests.verdicts.happened import (
    BY_TRANSACTION,
    EXPIRED,
    GROUP_DELETED,
    OFFSET_DELETED,
    REWOUND,
    TOPIC_DELETED,
    WHILE_EMPTY,
    Happening,
)
from tests.verdicts.incidents import (
    Event,
    Window,
    commits_after,
    groups_gone,
    share_partitions_deleted,
    timeline_of,
)
from tests.verdicts.truth import Truth, home_of, read_truth
from tests.verdicts.witness import Key

DATA = Path(__file__).parents[1] / "data"
MAY_BE = {
    "expired": {EXPIRED},
    "group deleted": {GROUP_DELETED},
    "offset deleted": {OFFSET_DELETED},
    "topic deleted": {TOPIC_DELETED},
    "topic re-created under another id": {TOPIC_DELETED},
    "committed while the group was Empty": {WHILE_EMPTY, BY_TRANSACTION},
}
"""What happened where a sentence has these words."""
REMOVALS = {EXPIRED, GROUP_DELETED, OFFSET_DELETED, TOPIC_DELETED}
BACKWARDS = {REWOUND, WHILE_EMPTY, BY_TRANSACTION}
VERDICTS = {
    "expired": "expired",
    "group_deleted": "group deleted",
    "offset_deleted": "offset deleted",
    "topic_deleted": "topic deleted",
    "topic_recreated": "topic re-created under another id",
    "committed_while_empty": "committed while the group was Empty",
}
TAKES_RECORDS = {"topic deleted", "topic re-created under another id"}
"""Where the records are gone, none is read again."""

N = r"[\d,]+"
JUDGED = re.compile(
    rf"(?P<groups>{N}) groups?: (?P<words>.+?) on (?P<offsets>{N}) partitions?"
    rf"(?:; (?:(?P<commit_groups>{N}) groups? lost )?"
    rf"(?P<commits>{N}) commits?(?: lost)?)?"
    rf"(?:[,;] (?:(?P<least>at least )?(?P<again>{N}) records? (?:is|are) read again"
    r"|cannot tell how many records are read again: no later commit shows it))?\."
)
UNTOLD = re.compile(
    rf"(?:(?P<offsets>{N}) offsets? of (?P<groups>{N}) groups? (?:was|were) removed; cannot tell "
    r"whether (?:it|they) expired or (?:was|were) deleted: no record shows it)?"
    rf"(?:(?:; t|T)he state of (?P<states>{N}) share partitions? of "
    rf"(?P<state_groups>{N}) share groups? was deleted)?"
    rf"(?:(?:; )?(?P<alone>{N})(?: more)? groups? (?:was|were) removed without a committed offset; "
    r"cannot tell whether (?:it|they) (?:was|were) deleted or a cleanup removed (?:it|them): no "
    r"record shows it)?"
    rf"(?:(?:; c|C)annot tell (?:what else happened to them|what happened to (?P<more>{N}) more"
    rf"|what happened to (?P<untold_groups>{N}) groups?(?: on (?P<untold>{N}) partitions?)?)"
    r": (?P<reason>.+))?\."
)
OTHERS = re.compile(r"\d+ more causes?: (?P<words>.+)\.")
GIVEN_BACK = re.compile(
    rf"(?:(?P<offsets>{N}) offsets? of (?P<groups>{N}) groups? can be given back with the command "
    rf"below(?: \((?P<refused>{N}) refused\))?"
    rf"|No offset can be given back(?:: (?:(?P<none_refused>{N}) refused)?(?:, )?"
    rf"(?:(?P<there>{N}) there already)?)?)\."
)


class Judged(NamedTuple):
    """What an answer says of one offset."""

    words: str
    key: Key
    happening: Happening
    was_committed: bool


class Incident(NamedTuple):
    """An incident.

    Attributes:
        sentences: What is said of it.
        judged: Offsets of which the answer says what happened.
        removed: Offsets of which it says that it cannot tell by what they were removed.
        untold: Others of which it cannot tell what happened.
        whole_since: Of the others, since when it says that nothing did.
        named: Groups that any record of the dump names.
        plan: Rows of `restore_plan`.
        truth: What happened while the dump was made,
        happened: of that, what may have been in the time.
        events: The timeline.
        window: The time.
        partitions: How many the offsets topic had, and which of them the dump has.
    """

    sentences: tuple[str, ...]
    judged: list[Judged]
    removed: set[Key]
    untold: set[Key]
    whole_since: dict[Key, int]
    named: set[str]
    plan: list[dict[str, Any]]
    truth: Truth
    happened: list[Happening]
    events: Sequence[Event]
    window: Window
    partitions: tuple[int, set[int]]

    def is_there(self, group: str) -> bool:
        """Whether the dump has the partition of a group."""
        count, there = self.partitions
        return home_of(group, count) in there


INCIDENTS = {
    "v1": ("dumps/kafka-2.0.1-v1", 10, "2026-11-21T09:47:00Z"),
    "story": ("dumps/kafka-4.3.1-story", 50, "2026-11-21T09:15:00Z"),
    "classic": ("dumps/kafka-3.9.2-classic", 50, "2026-11-21T09:18:00Z"),
    "expiry": ("expiry/kafka-4.3.1-expiry", 20, "2026-11-21T08:58:00Z"),
    "upgrade": ("dumps/kafka-upgrade-2.0.1-to-3.9.2", 8, "2026-11-21T09:25:00Z"),
    "share": ("dumps/kafka-4.0.2-share", 10, "2026-11-21T09:02:30Z"),
    "streams": ("incidents/kafka-4.1.2-share-streams", 12, "2026-11-21T08:54:30Z"),
    "altered": ("incidents/kafka-4.2.1-share", 12, "2026-11-21T09:26:30Z"),
}
"""Dumps, how many partitions their offsets topics have, and when."""
LIKE_OTHERS = ("v1", "upgrade", "altered")
"""Incidents whose sentences are of forms that others have, too."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=pytest.mark.long if each in LIKE_OTHERS else ())
        for each in INCIDENTS
    ],
)
def incident(request: pytest.FixtureRequest) -> Incident:
    dump, count, around = INCIDENTS[request.param]
    folder = DATA / dump
    with open_dump(str(folder)) as opened:
        state = opened.replay()
        answer = state.forensics(around=around)
        timeline = state.ask("timeline")
        verdicts = timeline.to_polars("offset_verdicts").to_dicts()
        named = timeline.to_polars("group_events")["group_id"].unique().to_list()
    begin, end = (answer.figures["window"].begin, answer.figures["window"].end)
    window = _ms(begin), _ms(end)
    truth = read_truth(folder.name)
    happened = [
        each for each in truth.happenings if each.at[0] <= window[1] and each.at[1] >= window[0]
    ]
    causes = answer.to_polars("incident_causes").to_dicts()
    # None of these dumps has an election that lost anything.
    assert {each["copy"] for each in causes} == {None}
    judged = [
        _judged(row, happened)
        for row in answer.to_polars("offset_verdicts").to_dicts()
        if row["verdict"] != "cannot_tell"
    ]
    removed, untold = set[Key](), set[Key]()
    whole_since = {_key(each): _ms(each["since"]) for each in verdicts if each["since"]}
    for row in verdicts:
        if row["verdict"] == "cannot_tell" and _touches(row, begin, end):
            is_removal = row["rung"] == "deletion" and row["at"] is not None
            (removed if is_removal else untold).add(_key(row))
    plan, groups = (answer.to_arrow(each) for each in ("restore_plan", "restore_groups"))
    restored = restored_of(plan, groups, begin, "commands.sh")
    there = {int(each.name.rpartition("-")[2]) for each in folder.glob("*/__consumer_offsets-*")}
    return Incident(
        sentences_of(causes, [], restored),
        judged,
        removed,
        untold,
        whole_since,
        {*named, *(each["group_id"] for each in verdicts)},
        plan.to_pylist(),
        truth,
        happened,
        timeline_of(folder.name),
        window,
        (count, there),
    )


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _key(row: Mapping[str, Any]) -> Key:
    return row["group_id"], row["topic"], row["partition"]


def _touches(row: Mapping[str, Any], begin: datetime, end: datetime) -> bool:
    at, not_before = row["at"], row["not_before"]
    if at is None:
        return not_before is None or bool(not_before <= end)
    return bool(at >= begin and (not_before or at) <= end)


def _judged(row: Mapping[str, Any], happened: Sequence[Happening]) -> Judged:
    words, key, was, at = VERDICTS[row["verdict"]], _key(row), row["was"], _ms(row["at"])
    matching = [
        each
        for each in happened
        if each.key == key
        and each.what in MAY_BE[words]
        and (was is None or was in each.was)
        and each.at[0] - 1 <= at
        # That the topic is another one shows in the next commit.
        and (at <= each.at[1] + 1 or words == VERDICTS["topic_recreated"])
    ]
    assert matching, f"{words}: {key} was {was} at {at}: nothing of the kind happened"
    return Judged(words, key, matching[0], was is not None and row["committed_at"] is not None)


def _number(text: str | None) -> int:
    return 0 if text is None else int(text.replace(",", ""))


def _groups(keys: Iterable[Key]) -> set[str]:
    return {key[0] for key in keys}


def _of(pattern: re.Pattern[str], sentences: Sequence[str]) -> Iterator[re.Match[str]]:
    yield from filter(None, (pattern.fullmatch(each) for each in sentences))


def _untold(incident: Incident) -> dict[str, str | None]:
    """Return the parts of the sentence on what cannot be told, each None where it has no such."""
    matches = [each.groupdict() for each in _of(UNTOLD, incident.sentences)]
    assert len(matches) <= 1
    return matches[0] if matches else dict.fromkeys(UNTOLD.groupindex)


def test_every_sentence_is_of_a_form_that_is_held(incident: Incident) -> None:
    *sentences, last = incident.sentences
    assert GIVEN_BACK.fullmatch(last)
    assert sentences
    forms = (JUDGED, UNTOLD, OTHERS)
    strange = [each for each in sentences if not any(form.fullmatch(each) for form in forms)]
    assert strange == []


def test_what_is_judged_is_counted_as_it_happened(incident: Incident) -> None:
    matches = list(_of(JUDGED, incident.sentences))
    of_others = {
        each for match in _of(OTHERS, incident.sentences) for each in match["words"].split(", ")
    }
    words = {match["words"] for match in matches} | of_others
    assert words == {each.words for each in incident.judged}
    for match in matches:
        judged = [each for each in incident.judged if each.words == match["words"]]
        taken = [each for each in judged if each.was_committed and each.happening.what in REMOVALS]
        assert _number(match["groups"]) == len({each.key[0] for each in judged})
        assert _number(match["offsets"]) == len({each.key for each in judged})
        assert _number(match["commits"]) == len(taken)
        if match["commit_groups"]:
            assert _number(match["commit_groups"]) == len({each.key[0] for each in taken})


def test_records_that_are_read_again_are_those_between_commits(incident: Incident) -> None:
    for match in _of(JUDGED, incident.sentences):
        judged = [each for each in incident.judged if each.words == match["words"]]
        costs = [_again(incident, each) for each in judged]
        known = [each for each in costs if each is not None]
        assert _number(match["again"]) == sum(known)
        assert bool(match["least"]) == (None in costs and sum(known) > 0)


def _again(incident: Incident, judged: Judged) -> int | None:
    """Return how many records are read again; None where no commit of the timeline shows it."""
    happening = judged.happening
    was = max(happening.was - {None}, default=0)
    if happening.what in BACKWARDS:
        return was - min(each for each in happening.became if each is not None)
    if not judged.was_committed:
        return 0
    if judged.words in TAKES_RECORDS:
        return None
    later = commits_after(incident.events, judged.key, happening.at[1])
    # A later one may be of a group that read again and went on.
    return None if later is None or later >= was else was - later


def test_what_is_removed_by_nothing_that_can_be_told_did_go(incident: Incident) -> None:
    removals = {each.key for each in incident.happened if each.what in REMOVALS}
    begin, end = incident.window
    # Of members who committed without a word it is known when their group was deleted.
    silent = {
        group
        for group, spans in incident.truth.groups_deleted.items()
        if any(low <= end and high >= begin for low, high in spans)
    }
    assert {key for key in incident.removed - removals if key[0] not in silent} == set()
    parts = _untold(incident)
    assert _number(parts["offsets"]) == len(incident.removed)
    assert _number(parts["groups"]) == len(_groups(incident.removed))


def test_of_what_nothing_tells_it_is_only_counted(incident: Incident) -> None:
    parts, rest = _untold(incident), incident.untold - incident.removed
    assert bool(parts["reason"]) == bool(incident.untold)
    if incident.removed:
        assert _number(parts["more"]) == len(rest)
    elif incident.untold:
        assert _number(parts["untold"]) == len(incident.untold)
        assert _number(parts["untold_groups"]) == len(_groups(incident.untold))


def test_nothing_that_surely_happened_is_left_out(incident: Incident) -> None:
    begin, end = incident.window
    certain = {
        each.key
        for each in incident.happened
        if each.is_certain
        and begin <= each.at[0]
        and each.at[1] <= end
        and incident.is_there(each.key[0])
        # What was compacted away is in no record: the answer says since when nothing was lost.
        and each.at[1] > incident.whole_since.get(each.key, 0)
    }
    counted = {each.key for each in incident.judged} | incident.removed | incident.untold
    assert certain <= counted


def test_groups_that_had_no_offset_are_counted_when_they_are_gone(incident: Incident) -> None:
    parts = _untold(incident)
    states = share_partitions_deleted(incident.events, incident.window)
    gone = set(filter(incident.is_there, groups_gone(incident.events, incident.window)))
    # Of some the cleaner took every record.
    gone &= incident.named
    with_offsets = _groups(
        [*(each.key for each in incident.judged), *incident.removed, *incident.untold]
    )
    # Brokers of 4.1.2 and 4.2.1 had pruned the state log: no tombstone of a state is left there.
    if parts["states"]:
        assert _number(parts["states"]) == len(states)
        assert _number(parts["state_groups"]) == len(_groups(states))
        gone -= _groups(states)
    assert _number(parts["alone"]) == len(gone - with_offsets)


def test_what_can_be_given_back_is_what_restore_says(incident: Incident) -> None:
    match = GIVEN_BACK.fullmatch(incident.sentences[-1])
    assert match is not None
    counted = {
        verdict: [each for each in incident.plan if each["verdict"] == verdict]
        for verdict in ("restore", "refused", "unchanged")
    }
    assert _number(match["offsets"]) == len(counted["restore"])
    assert _number(match["groups"]) == len({each["group_id"] for each in counted["restore"]})
    assert _number(match["refused"] or match["none_refused"]) == len(counted["refused"])
    if not counted["restore"]:
        assert _number(match["there"]) == len(counted["unchanged"])
