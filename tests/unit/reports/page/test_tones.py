"""Tones of the page's words: each word is one that the column's table really has."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from reports.page.groups import TONES
from reports.page.rows import Shown
from reports.page.subjects.internal_topics import _COLUMNS as INTERNAL_TOPICS
from reports.page.subjects.offsets import _COLUMNS as EXPIRY
from reports.page.subjects.offsets import _REMOVALS as REMOVALS
from schemas import table as table_contract
from schemas.evaluation_rules import rules_document
from schemas.share_rules import share_rules

TONED = [
    ("offset_expiration", EXPIRY),
    ("log_cleaning", INTERNAL_TOPICS),
    ("offset_removals", REMOVALS),
]


@pytest.mark.parametrize(("table", "columns"), TONED, ids=[name for name, _ in TONED])
def test_every_word_with_a_tone_is_in_the_contract(table: str, columns: Sequence[Shown]) -> None:
    about = {each.name: each.about for each in table_contract(table).columns}
    toned = [each for each in columns if each.tones]
    assert toned
    for column in toned:
        known = set(re.findall(r"[a-z_]+", about[column.name]))
        assert set(column.tones or ()) <= known


def test_every_verdict_with_a_tone_is_one_of_lag_or_of_share_groups() -> None:
    assert set(TONES) <= {*rules_document("lag")["verdicts"], *share_rules().statuses}
