"""The table `gaps` without names: what is a name its kind says, and its words are made anew."""

from __future__ import annotations

import json

from analytics.gaps.gap import gap, gap_of_row, gap_rows
from analytics.redaction.redactor import names_in, redacted
from analytics.redaction.text import WITHHELD_TEXT, NamesInText, Pseudonyms
from schemas import CONSUMER_OFFSETS

KEY = bytes(range(32))
ABSENT = gap(
    "groups_without_copy",
    topic=CONSUMER_OFFSETS,
    groups=("records", "payments"),
    more=1,
    partitions=(1, 2, 7),
)
ROWS = gap_rows(
    {
        "lag": [
            ABSENT,
            gap("more_groups_may_match", pattern="pay*", why=ABSENT),
            gap("group_incomplete", group_id="billing", missing="records of payments are gone"),
        ]
    }
)


def test_names_are_found_by_the_type_of_a_parameter() -> None:
    found = names_in([ROWS])
    assert found["group"] == {"records", "payments", "billing"}
    assert found["pattern"] == {"pay*"}


def test_a_group_that_is_called_as_a_word_is_replaced_where_it_is_a_name() -> None:
    known = Pseudonyms(KEY)
    names = names_in([ROWS])
    text = NamesInText(known.of_text(names), {"records", "of", "are", "gone"})
    made = redacted(ROWS, known, text).to_pylist()
    by_code = {each["code"]: each for each in made}

    records, payments, billing = (
        known.of("group", each) for each in ("records", "payments", "billing")
    )
    words = (
        f"{records}, {payments} and 1 more belong to {CONSUMER_OFFSETS} 1-2, 7, of which this dump "
        f"has no copy"
    )
    assert by_code["groups_without_copy"]["words"] == words
    assert json.loads(by_code["groups_without_copy"]["parameters"])["groups"] == [records, payments]
    pattern = known.of("pattern", "pay*")
    assert by_code["more_groups_may_match"]["words"] == (
        f"whether more groups match {pattern!r}: {words}"
    )
    # "records" may be the word or the group here: only this part of the words is withheld.
    assert by_code["group_incomplete"]["words"] == f"{billing}: {WITHHELD_TEXT}"
    assert {gap_of_row(each).words for each in made} == {each["words"] for each in made}
