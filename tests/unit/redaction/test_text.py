"""Names in text: replaced where they stand alone or between signs, whatever they look like."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.redaction.documents import WITHHELD, redacted_document
from analytics.redaction.pseudonyms import Pseudonyms
from analytics.redaction.tables import names_in, redacted
from analytics.redaction.text import NamesInText

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
        ("my group has my groups", "G1 has G1s"),
        ('--group quo"ted', "--group G2"),
        ("a.b_c-1", "G3-1"),
        ("group ключ: x", "group G4: x"),
        ("__consumer_offsets-9@312", "__consumer_offsets-9@312"),
    ],
)
def test_a_name_is_replaced_where_it_stands(text: str, expected: str) -> None:
    assert NamesInText(NAMES).replaced(text) == expected


@given(st.text(min_size=1, max_size=20), st.sampled_from(["{}", "group {} went", "({})", "a {}@7"]))
def test_no_name_is_left_where_it_stands_alone(name: str, around: str) -> None:
    if name.strip() != name or not name:
        return
    stands_for = Pseudonyms(KEY).of("group", name)
    said = NamesInText({name: stands_for}).replaced(around.format(name))
    assert stands_for in said or name in around


def test_the_same_key_gives_the_same_names_and_another_key_others() -> None:
    one, same, other = Pseudonyms(KEY), Pseudonyms(KEY), Pseudonyms(KEY[::-1])
    assert one.of("group", "g") == same.of("group", "g") != other.of("group", "g")
    assert one.of("group", "g") != one.of("topic", "g")
    assert one.of("topic", "__consumer_offsets") == "__consumer_offsets"
    assert one.of("group", "") == ""


def test_columns_that_identify_have_pseudonyms_however_deep() -> None:
    rows = pa.table(
        {
            "group_id": ["g", None],
            "topics": [["t", "u"], None],
            "value": pa.array([{"client_id": "c", "note": "g reads t-1"}, None]),
            "resource_type": ["topic", "broker"],
            "resource": ["t", "1"],
            "bytes": [b"g", None],
            "number": [1, 2],
        }
    )
    names = names_in([rows])
    known = Pseudonyms(KEY)
    made = redacted(rows, known, NamesInText(known.of_text(names))).to_pylist()
    group, topic = known.of("group", "g"), known.of("topic", "t")
    assert made[0] == {
        "group_id": group,
        "topics": [topic, known.of("topic", "u")],
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
    text = NamesInText(known.of_text({"topic": ["t"]}))
    document = {"created_from": ["/data/x"], "t": 1, "topic": "t", "note": "t-0", "n": [None, 2.5]}
    made = redacted_document(document, known, text)
    name = known.of("topic", "t")
    assert made == {
        "created_from": [WITHHELD], name: 1, "topic": name, "note": f"{name}-0", "n": [None, 2.5],
    }  # fmt: skip
