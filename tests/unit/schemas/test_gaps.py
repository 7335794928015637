"""What a dump may not tell: files that say it wrongly are refused."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.gaps import Template, gap_kinds, parse_gaps
from schemas.reading import SchemaError

Document = dict[str, Any]


def document(**changes: object) -> Document:
    """A file of one sound gap, with changes; None takes a key out."""
    sound: Document = {
        "about": "Offsets of a group are gone.",
        "advice": "Take them along.",
        "words": "[{group_id}: ]{offsets:# offset is|# offsets are} gone: {why}",
        "place": ["group_id?", "topic"],
        "parameters": {"offsets": "count", "why": "text"},
    }
    gap = {name: each for name, each in {**sound, **changes}.items() if each is not None}
    return {"about": "Of offsets.", "gaps": {"offsets_gone": gap}}


def test_a_sound_one_is_taken() -> None:
    (kind,) = parse_gaps(document(), "offsets")
    assert (kind.code, kind.family, dict(kind.place)) == (
        *("offsets_gone", "offsets"),
        {"group_id": True, "topic": False},
    )
    assert kind.counts == {"offsets"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"surprise": 1}, "unknown field `surprise`"),
        ({"advice": None}, "missing required field `advice`"),
        ({"about": " "}, "a text is empty"),
        ({"place": ["group_id?", "room"]}, '"room" is no place'),
        ({"parameters": {"offsets": "count", "why": "words"}}, '"words" is no type'),
        ({"parameters": {"offsets": "count"}}, "name why, which it does not have"),
        (
            {"parameters": {"offsets": "count", "why": "text", "more": "count?"}},
            "do not name more",
        ),
        ({"parameters": {"offsets": "count", "why": "text?"}}, "is for what may lack"),
        ({"place": ["group_id", "topic"]}, "is for what may lack, and nothing may"),
        ({"words": "[{group_id}: ]{offsets} offsets: {why}"}, "has forms for one and many"),
        (
            {"words": "[{group_id}: ]{offsets:# is|they are}: {why}"},
            "of many has no # for the number",
        ),
        ({"words": "[{group_id}: {offsets:#|#}: {why}"}, "never closed"),
        ({"words": "{group_id]: {offsets:#|#}: {why}"}, "has no other"),
        ({"parameters": {"offsets": "count", "why": "text", "topic": "text"}}, "as a place is"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: Document, reason: str) -> None:
    with pytest.raises(SchemaError) as refused:
        list(parse_gaps(document(**changes), "offsets"))
    assert reason in str(refused.value)
    assert "offsets_gone" in str(refused.value)


@pytest.mark.parametrize(
    ("offsets", "group", "words"),
    [
        (1, None, "1 offset is gone: compacted"),
        (0, "g", "g: 0 offsets are gone: compacted"),
        (12345, "g", "g: 12,345 offsets are gone: compacted"),
    ],
)
def test_a_count_has_its_own_form_for_one(offsets: int, group: str | None, words: str) -> None:
    (kind,) = parse_gaps(document(), "offsets")
    values = {"offsets": offsets, "group_id": group, "why": "compacted"}
    assert kind.template.filled(values) == words


def test_a_value_that_lacks_is_an_error_and_no_empty_place() -> None:
    with pytest.raises(KeyError, match="why"):
        Template("gone: {why}").filled({"why": None})


def test_every_gap_says_what_it_means_in_sentences() -> None:
    for kind in gap_kinds().values():
        for text in (kind.about, kind.advice):
            assert text[0].isupper() or text.startswith("`"), kind.code
            assert text.endswith("."), kind.code
