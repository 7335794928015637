"""Names in text: replaced where they stand alone or between signs, whatever they look like."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from analytics.redaction.redactor import WITHHELD, names_in, redacted, redacted_document
from analytics.redaction.text import WITHHELD_TEXT, NamesInText, Pseudonyms
from schemas import tables
from schemas.names import kind_of, text_of

KEY = bytes(range(32))
NAMES = {
    "parcels": "T1",
    "parcels-eu": "T2",
    "/10.0.0.7": "H1",
    "my group": "G1",
    'quo"ted': "G2",
    "a.b_c": "G3",
    "ключ": "G4",
}


OWN_WORDS = {
    "group",
    "of",
    "records",
    "the",
    "members",
    "kafka-consumer-groups",
    "have",
    "not",
    "known",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parcels", "T1"),
        ("parcels-3", "T1-3"),
        ("parcels-eu-3", "T2-3"),
        ("x-parcels-eu.", "x-T2."),
        ("parcelstore parcels2", "parcelstore parcels2"),
        ("of (parcels), 'parcels'", "of (T1), 'T1'"),
        ("from /10.0.0.7:9092", "from H1:9092"),
        ("a.b_c-1", "G3-1"),
        ("group ключ-7: x", "group G4-7: x"),
        ("__consumer_offsets-9@312", "__consumer_offsets-9@312"),
    ],
)
def test_a_name_is_replaced_where_it_stands(text: str, expected: str) -> None:
    assert NamesInText(NAMES, OWN_WORDS).replaced(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "my group has records",
        'of quo"ted: records',
        'of quo\\"ted: records',
        "--group 'it'\"'\"'s'",
        "of it's",
        "11 of the records",
        "the records of a",
        "members of 0",
        "line\\nbreak has none",
        "line\nbreak has none",
        "orders-3 has none",
    ],
)
def test_a_sentence_is_withheld_where_it_may_have_a_name_that_cannot_be_told_apart(
    text: str,
) -> None:
    names = ["my group", 'quo"ted', "it's", "11", "a", "0", "line\nbreak", "orders", "orders-3"]
    assert NamesInText(dict.fromkeys(names, "N"), OWN_WORDS).replaced(text) == WITHHELD_TEXT


@pytest.mark.parametrize(
    "text",
    [
        "since 2026-11-21T08:58:11.000Z",
        "1,011,011 have",
        "11.5 have",
        "have __consumer_offsets-11@09",
        "the",
        "kafka-consumer-groups --describe",
    ],
)
def test_times_numbers_and_our_own_words_stay(text: str) -> None:
    names = dict.fromkeys(["11", "2026", "09", "011", "the", "consumer-groups"], "N")
    assert NamesInText(names, OWN_WORDS).replaced(text) == text


def test_names_that_no_sentence_has_do_not_withhold_it() -> None:
    names = NamesInText({"11": "M1", "a note": "M2", "note-x": "M3"}, OWN_WORDS, {"11", "a note"})
    assert names.replaced("11 of the records") == "11 of the records"


@given(
    st.text(min_size=1, max_size=12),
    st.lists(st.text(min_size=1, max_size=6), max_size=4),
    st.sampled_from(["{}", "group {} of 7", "({})", "of {}@7", "'{}'", '"{}"', "{}, the"]),
    st.sampled_from([str, shlex.quote, lambda name: json.dumps(name)[1:-1]]),
)
@example("0 ", [], "({})", str)
def test_no_name_is_left_where_it_stands_alone(
    name: str, others: list[str], around: str, written: Callable[[str], str]
) -> None:
    assume(name.strip())
    text = around.format(written(name))
    known = Pseudonyms(KEY).of_text({"group": [name, *others]})
    changed = NamesInText(known, OWN_WORDS).replaced(text)
    # A field that is one word of ours, or one number, has no name in it.
    assert changed == WITHHELD_TEXT or changed != text or around == "{}"


@given(st.sampled_from(["it's", "11", "a b", "group", "the", "--group", "orders-3", "x:1", "\n"]))
def test_arguments_of_commands_are_replaced_whatever_they_look_like(name: str) -> None:
    known = Pseudonyms(KEY).of_text({"group": [name]})
    said = f"kafka-consumer-groups --delete --group {shlex.quote(name)} --topic x"
    assert NamesInText(known, OWN_WORDS | {"delete"}).command(said) == (
        f"kafka-consumer-groups --delete --group {known[name]} --topic x"
    )


def test_an_object_is_a_name_or_a_name_and_a_partition() -> None:
    names = NamesInText({"11": "T1", "the": "G1"}, OWN_WORDS)
    assert [names.object(each) for each in ("11", "11-11", "the", "the-0")] == [
        "T1", "T1-11", "G1", "G1-0",
    ]  # fmt: skip


def test_rows_and_lists_are_in_the_order_of_what_stands_for_names() -> None:
    rows = pa.table(
        {
            "group_id": [f"group {n}" for n in range(20)],
            "topics": [[f"topic {n}" for n in range(20)]] * 20,
            "partition": range(20),
        }
    )
    known = Pseudonyms(KEY)
    made = redacted(rows, known, NamesInText({}), ["group_id", "partition"])
    assert made["group_id"].to_pylist() == sorted(made["group_id"].to_pylist())
    assert made["topics"][0].as_py() == sorted(made["topics"][0].as_py())
    assert set(zip(made["group_id"].to_pylist(), made["partition"].to_pylist(), strict=True)) == {
        (known.of("group", f"group {n}"), n) for n in range(20)
    }


def test_words_stay_what_they_are_though_a_group_is_named_like_one() -> None:
    names = {"group": {"lag", "expiration", "11"}}
    rows = pa.table({"group_id": ["lag"], "status": ["lag"], "cause": ["expiration"]})
    known = Pseudonyms(KEY)
    text = NamesInText(known.of_text(names), {"expiration", "lag"})
    assert redacted(rows, known, text).to_pylist() == [
        {"group_id": known.of("group", "lag"), "status": "lag", "cause": "expiration"}
    ]


def test_a_column_of_which_nothing_is_declared_is_refused() -> None:
    with pytest.raises(LookupError, match="what text whatever holds"):
        redacted(pa.table({"whatever": ["x"]}), Pseudonyms(KEY), NamesInText({}))


def test_every_column_of_text_in_a_workspace_is_declared() -> None:
    kept = {"state", "history", "evaluation"}
    undeclared = [
        f"{name}.{column.name}"
        for name, each in tables().items()
        if each.kind in kept
        for column in each.columns
        if column.type in {"string", "array<string>"} and kind_of(column.name) is None
        if not _is_declared(column.name)
    ]
    assert undeclared == []


def _is_declared(column: str) -> bool:
    try:
        return bool(text_of(column))
    except LookupError:
        return False


def test_the_same_key_gives_the_same_names_and_another_key_others() -> None:
    one, same, other = Pseudonyms(KEY), Pseudonyms(KEY), Pseudonyms(KEY[::-1])
    assert one.of("group", "g") == same.of("group", "g") != other.of("group", "g")
    assert one.of("group", "g") != one.of("topic", "g")
    assert one.of("topic", "__consumer_offsets") == "__consumer_offsets"
    assert one.of("group", "") == ""


def test_columns_that_identify_have_pseudonyms_however_deep() -> None:
    rows = pa.table(
        {
            "group_id": ["g-1x", None],
            "topics": [["tx", "ux"], None],
            "value": pa.array([{"client_id": "c", "note": "g-1x reads tx-1"}, None]),
            "resource_type": ["topic", "broker"],
            "resource": ["tx", "1"],
            "bytes": [b"g", None],
            "number": [1, 2],
        }
    )
    names = names_in([rows])
    known = Pseudonyms(KEY)
    made = redacted(rows, known, NamesInText(known.of_text(names))).to_pylist()
    group, topic = known.of("group", "g-1x"), known.of("topic", "tx")
    assert made[0] == {
        "group_id": group,
        "topics": sorted([topic, known.of("topic", "ux")]),
        "value": {"client_id": known.of("client", "c"), "note": f"{group} reads {topic}-1"},
        "resource_type": "topic",
        "resource": topic,
        "bytes": None,
        "number": 1,
    }
    assert made[1] == {
        "group_id": None, "topics": None, "value": None, "resource_type": "broker",
        "resource": "1", "bytes": None, "number": 2,
    }  # fmt: skip


def test_documents_name_neither_paths_nor_topics() -> None:
    known = Pseudonyms(KEY)
    text = NamesInText(known.of_text({"topic": ["tx"]}))
    document = {"created_from": ["/data/x"], "topic": "tx", "note": "tx-0", "n": [None, 2.5]}
    made = redacted_document(document, known, text)
    name = known.of("topic", "tx")
    assert made == {
        "created_from": [WITHHELD], "topic": name, "note": f"{name}-0", "n": [None, 2.5],
    }  # fmt: skip
