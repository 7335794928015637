"""Findings as JSON lines are, byte for byte, what `json.dumps` makes of each."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.findings.found import FINDINGS
from reports.findings import json_lines

TEXTS = st.none() | st.sampled_from(["", "null"]) | st.text(max_size=8)
NUMBERS = st.none() | st.integers(-(2**31), 2**31 - 1)
LONG_NUMBERS = st.none() | st.integers(-(2**63), 2**63 - 1)
KINDS = {
    pa.string(): TEXTS,
    pa.int32(): NUMBERS,
    pa.int64(): LONG_NUMBERS,
    pa.timestamp("us", "UTC"): st.none()
    | st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
}
RECORD = st.fixed_dictionaries(
    {each.name: KINDS[each.type] for each in FINDINGS.field("evidence").type.value_type}
)
FINDING = st.fixed_dictionaries(
    {each.name: KINDS.get(each.type, st.lists(RECORD, max_size=3)) for each in FINDINGS}
)


def plain(row: dict[str, Any]) -> str:
    """Return the line of one finding."""
    since = row["since"]
    text = since and since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    records = FINDINGS.field("evidence").type.value_type
    evidence = [{each.name: one[each.name] for each in records} for one in row["evidence"]]
    printed = {**row, "since": text, "evidence": evidence}
    return json.dumps({name: printed[name] for name in FINDINGS.names}, ensure_ascii=False) + "\n"


@given(st.lists(FINDING, max_size=6))
def test_lines_are_those_of_json(rows: list[dict[str, Any]]) -> None:
    text = "".join(json_lines([pa.Table.from_pylist(rows, FINDINGS)]))
    assert text == "".join(map(plain, rows))


def test_lines_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.findings._AT_ONCE", 2)
    rows = [{"finding_id": str(number), "evidence": []} for number in range(5)]
    pieces = list(json_lines([pa.Table.from_pylist(rows, FINDINGS)]))
    assert len(pieces) == 3
    assert [json.loads(line)["finding_id"] for line in "".join(pieces).splitlines()] == [
        str(number) for number in range(5)
    ]


def test_every_character_that_json_escapes_is_escaped() -> None:
    text = "".join(map(chr, range(300))) + "\N{LINE SEPARATOR}\N{PILE OF POO}"
    row = dict.fromkeys(FINDINGS.names) | {"message": text, "evidence": []}
    assert "".join(json_lines([pa.Table.from_pylist([row], FINDINGS)])) == plain(row)
