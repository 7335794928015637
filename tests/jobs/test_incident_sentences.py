"""Sentences of incidents, held against what clients did while the dump was made.

`read_truth` has what `timeline.jsonl` and `removals.json` tell of a dump. Each offset that an
answer judges, or says was removed, has to match something that happened; the numbers of sentences
are counted anew from those. That nothing is left out is not held here: an answer is about groups
that something surely happened to, at a time that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from analytics import open_dump
from reports.incident_summary import Restored, sentences_of
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
from tests.verdicts.truth import read_truth
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
NUMBER = r"[\d,]+"
JUDGED = re.compile(
    rf"(?P<groups>{NUMBER}) groups?: (?P<words>.+?) on (?P<offsets>{NUMBER}) partitions?"
    rf"(?:; (?:(?P<commit_groups>{NUMBER}) groups? lost )?"
    rf"(?P<commits>{NUMBER}) commits?(?: lost)?)?"
    rf"(?:[,;] (?:(?P<least>at least )?(?P<again>{NUMBER}) records? (?:is|are) read again"
    r"|cannot tell how many records are read again: no later commit shows it))?\."
)
REMOVED = re.compile(
    rf"(?P<offsets>{NUMBER}) offsets? of (?P<groups>{NUMBER}) groups? (?:was|were) removed; cannot "
    r"tell whether (?:it|they) expired or (?:was|were) deleted: no record shows it"
    r"(?:; cannot tell what (?:else happened to them|happened to [\d,]+ more): .+)?\."
)
UNTOLD = re.compile(
    rf"Cannot tell what happened to (?P<groups>{NUMBER}) groups? on (?P<offsets>{NUMBER}) "
    r"partitions?: it went back, and the dump does not show who committed it\."
)
OTHERS = re.compile(r"\d+ more causes?: (?P<words>.+)\.")
NONE_BACK = "No offset can be given back: none refused."


class Told(NamedTuple):
    """What an answer says of one offset."""

    words: str
    key: Key
    happening: Happening
    was_committed: bool


class Said(NamedTuple):
    """An incident: its sentences, and what happened to which offset in the time."""

    sentences: tuple[str, ...]
    judged: list[Told]
    removed: set[Key]
    happened: list[Happening]


INCIDENTS = {
    "v1": ("dumps/kafka-2.0.1-v1", "2026-11-21T09:47:00Z"),
    "story": ("dumps/kafka-4.3.1-story", "2026-11-21T09:15:00Z"),
    "classic": ("dumps/kafka-3.9.2-classic", "2026-11-21T09:18:00Z"),
    "expiry": ("expiry/kafka-4.3.1-expiry", "2026-11-21T08:58:00Z"),
    "upgrade": ("dumps/kafka-upgrade-2.0.1-to-3.9.2", "2026-11-21T09:25:00Z"),
    "share": ("dumps/kafka-4.0.2-share", "2026-11-21T09:02:30Z"),
}


LIKE_OTHERS = ("v1", "upgrade")
"""Incidents whose one sentence is of a form that another one has, too."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=pytest.mark.long if each in LIKE_OTHERS else ())
        for each in INCIDENTS
    ],
)
def said(request: pytest.FixtureRequest) -> Said:
    dump, around = INCIDENTS[request.param]
    with open_dump(str(DATA / dump)) as opened:
        answer = opened.replay().forensics(around=around)
    window = answer.figures["window"]
    begin, end = (round(each.timestamp() * 1000) for each in (window.begin, window.end))
    happened = [
        each
        for each in read_truth(dump.partition("/")[2]).happenings
        if each.at[0] <= end and each.at[1] >= begin
    ]
    causes = answer.to_polars("incident_causes").to_dicts()
    # None of these dumps has an election that lost anything.
    assert {each["copy"] for each in causes} == {None}
    judged, removed = list[Told](), set[Key]()
    for row in answer.to_polars("offset_verdicts").to_dicts():
        key = row["group_id"], row["topic"], row["partition"]
        if row["verdict"] == "cannot_tell":
            if row["rung"] == "deletion":
                removed.add(key)
            continue
        words = VERDICTS[row["verdict"]]
        at = round(row["at"].timestamp() * 1000)
        (match, *_) = _matching(happened, words, key, row["was"], at)
        judged.append(
            Told(words, key, match, row["was"] is not None and row["committed_at"] is not None)
        )
    restored = Restored(window.begin, 0, 0, 0, 0, {}, None)
    return Said(sentences_of(causes, [], restored), judged, removed, happened)


def _matching(
    happened: Sequence[Happening], words: str, key: Key, was: int | None, at: int
) -> list[Happening]:
    found = [
        each
        for each in happened
        if each.key == key
        and each.what in MAY_BE[words]
        and (was is None or was in each.was)
        and each.at[0] - 1 <= at
        # That the topic is another one shows in the next commit.
        and (at <= each.at[1] + 1 or words == VERDICTS["topic_recreated"])
    ]
    assert found, f"{words}: {key} was {was} at {at}: nothing of the kind happened"
    return found


def _number(text: str | None) -> int | None:
    return None if text is None else int(text.replace(",", ""))


def _of(pattern: re.Pattern[str], sentences: Sequence[str]) -> Iterator[re.Match[str]]:
    yield from filter(None, (pattern.fullmatch(each) for each in sentences))


def test_every_sentence_is_of_a_form_that_is_held(said: Said) -> None:
    *sentences, last = said.sentences
    assert last == NONE_BACK
    assert sentences
    forms = (JUDGED, REMOVED, UNTOLD, OTHERS)
    strange = [each for each in sentences if not any(form.fullmatch(each) for form in forms)]
    assert strange == []


def test_what_is_judged_is_counted_as_it_happened(said: Said) -> None:
    matches = list(_of(JUDGED, said.sentences))
    of_others = {
        each for match in _of(OTHERS, said.sentences) for each in match["words"].split(", ")
    }
    assert {match["words"] for match in matches} | of_others == {each.words for each in said.judged}
    for match in matches:
        told = [each for each in said.judged if each.words == match["words"]]
        taken = [each for each in told if each.was_committed and each.happening.what in REMOVALS]
        costs = [
            max(each.happening.was - {None}, default=0) - min(each.happening.became)
            for each in told
            if each.happening.what in BACKWARDS
        ]
        assert _number(match["groups"]) == len({each.key[0] for each in told})
        assert _number(match["offsets"]) == len({each.key for each in told})
        assert (_number(match["commits"]) or 0) == len(taken)
        if match["commit_groups"]:
            assert _number(match["commit_groups"]) == len({each.key[0] for each in taken})
        if costs:
            assert (_number(match["again"]), match["least"]) == (sum(costs), None)


def test_of_what_nothing_tells_it_is_only_counted_and_it_did_happen(said: Said) -> None:
    removals = {each.key for each in said.happened if each.what in REMOVALS}
    assert said.removed <= removals
    matches = [*_of(REMOVED, said.sentences)]
    assert len(matches) == bool(said.removed)
    for match in matches:
        assert _number(match["offsets"]) == len(said.removed)
        assert _number(match["groups"]) == len({key[0] for key in said.removed})
    backwards = {each.key for each in said.happened if each.what in BACKWARDS and each.is_certain}
    unjudged = backwards - {each.key for each in said.judged}
    for match in _of(UNTOLD, said.sentences):
        assert _number(match["offsets"]) == len(unjudged)
        assert _number(match["groups"]) == len({key[0] for key in unjudged})
