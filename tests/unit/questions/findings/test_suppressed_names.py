"""Which findings are accepted, by any names and patterns, is as if each was looked at alone."""

from __future__ import annotations

from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.findings.configured_rules import Suppression, suppressed
from analytics.questions.findings.found import FINDINGS
from tests.unit.questions.findings.test_findings import NOON

COLUMNS = ("rule", "group_id", "topic")
NAMES = st.sampled_from([None, "", "a", "b-1", "b-2", "B-1", "[b]", "*", "Zürich", "a\nb"])
PATTERNS = st.sampled_from(["*", "", "a", "b-?", "[ab]*", "[!a]*", "*-1", "b", "[[]b]", "Z*h"])
FINDING = st.fixed_dictionaries(dict.fromkeys(COLUMNS, NAMES))
ENTRY = st.builds(
    lambda rule, group, topic, hours: Suppression(
        rule, "known", "me", NOON + timedelta(hours=hours), group, topic
    ),
    PATTERNS,
    PATTERNS,
    PATTERNS,
    st.sampled_from([-1, 0, 1]),
)
ORIGINALS = {"a": "b-1", "b-2": "a"}


def covering(finding: dict[str, Any], entries: list[Suppression]) -> int | None:
    """Return which entry covers a finding: the first one."""
    texts = [finding[name] for name in COLUMNS]
    names = [ORIGINALS.get(each, each) or "" for each in texts]
    for place, each in enumerate(entries):
        patterns = (each.rule, each.group_id, each.topic)
        if each.until > NOON and all(map(fnmatchcase, names, patterns)):
            return place
    return None


@given(st.lists(FINDING, max_size=12), st.lists(ENTRY, max_size=4))
def test_an_entry_covers_what_all_its_patterns_fit_and_no_earlier_entry_covers(
    rows: list[dict[str, Any]], entries: list[Suppression]
) -> None:
    numbered = [{**row, "finding_id": str(n)} for n, row in enumerate(rows)]
    left, counted = suppressed(pa.Table.from_pylist(numbered, FINDINGS), entries, NOON, ORIGINALS)
    places = [covering(row, entries) for row in rows]
    assert left["finding_id"].to_pylist() == [
        str(n) for n, place in enumerate(places) if place is None
    ]
    assert counted["suppressed"].to_pylist() == [places.count(n) for n, _ in enumerate(entries)]
