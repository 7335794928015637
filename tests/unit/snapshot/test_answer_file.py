"""Rows of what a cluster answered: what says nothing has none."""

from __future__ import annotations

from analytics.snapshot.group_answers import AnswerRows


def test_an_empty_text_is_no_answer_as_it_is_none_in_a_record() -> None:
    rows = AnswerRows()
    rows.add("member", "g", "client_id", "")
    rows.add("member", "g", "rack_id", None)
    rows.add("group", "g", "state", "Stable")
    rows.add("group", "g", "offsets", None, error="COORDINATOR_LOAD_IN_PROGRESS")
    assert rows.columns["field"] == ["state", "offsets"]
    assert rows.columns["value"] == ["Stable", None]
    assert rows.columns["error"] == [None, "COORDINATOR_LOAD_IN_PROGRESS"]
