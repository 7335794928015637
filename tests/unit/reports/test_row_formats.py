"""Rows as text, JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pytest

from reports import row_formats
from reports.layout.output_format import OutputFormat
from reports.row_formats import Section, render, rendered, shown_tables

ROWS = pa.table(
    {
        "group": ["billing", "a|b", "bad\x1b[31m\nname", 'x,"y"'],
        "lag": pa.array([1234567, None, -34, 0], pa.int64()),
        "host": ["/10.0.0.1", None, "", "/h"],
        "group_type": ["classic"] * 4,
    }
)
SECTION = Section(ROWS, {"group": "GROUP", "lag": "LAG", "host": "HOST"}, ["group_type"])
SAID = {"as_of": {"time": None, "offsets": {}}, "input": ["dump"]}


def test_text_is_aligned_and_numbers_are_as_kafka_prints_them() -> None:
    lines = render([SECTION], "text", SAID).split("\n")
    assert [line.split() for line in lines[:3]] == [
        ["GROUP", "LAG", "HOST"],
        ["billing", "1234567", "/10.0.0.1"],
        ["a|b", "-", "-"],
    ]
    assert (
        len({line.index(word) for line, word in zip(lines, ("LAG", "1234567"), strict=False)}) == 1
    )
    assert not any(line.endswith(" ") for line in lines)


def test_a_terminal_only_shows_what_a_hostile_name_says() -> None:
    text = render([SECTION], "text", SAID)
    assert "\x1b" not in text
    assert len(text.split("\n")) == 1 + ROWS.num_rows


def test_json_is_one_object_with_every_value_as_it_is() -> None:
    answer = json.loads(render([SECTION], "json", SAID))
    assert list(answer) == ["schema_version", "as_of", "input", "rows"]
    assert answer["rows"] == ROWS.to_pylist()
    assert json.loads(render([], "json", SAID))["rows"] == []


def test_csv_has_a_header_and_the_columns_of_all_sections() -> None:
    other = Section(pa.table({"group": ["s"], "state": ["Empty"]}), {"group": "G", "state": "S"})
    text = render([SECTION, other], "csv", SAID)
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    assert list(rows[0]) == ["group", "lag", "host", "group_type", "state"]
    assert [row["group"] for row in rows] == [*ROWS["group"].to_pylist(), "s"]
    assert (rows[0]["lag"], rows[1]["lag"], rows[4]["state"]) == ("1234567", "", "Empty")


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_answer_of_any_size_is_printed_a_few_rows_at_a_time(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Section(pa.table({"name": [], "is_there": pa.array([], pa.bool_())}), {"name": "N"})
    at_once = render([SECTION, other, SECTION], form, SAID)
    monkeypatch.setattr(row_formats, "_AT_ONCE", 3)
    pieces = list(rendered([SECTION, other, SECTION], form, SAID))
    assert "".join(pieces) == at_once
    assert max(piece.count("/") for piece in pieces) < at_once.count("/")


def test_programs_get_values_as_python_writes_them() -> None:
    rows = pa.table(
        {"is_late": [True, False, None], "times": [1.0, 0.5, None], "on": [[1, 2], [], None]}
    )
    section = Section(rows, {name: name for name in rows.column_names})
    assert render([section], "csv", {}).splitlines() == [
        "is_late,times,on",
        'True,1.0,"1,2"',
        'False,0.5,""',
        ",,",
    ]
    assert json.loads(render([section], "json", {}))["rows"] == rows.to_pylist()


def test_markdown_keeps_bars_out_of_cells() -> None:
    lines = render([SECTION], "markdown", SAID).split("\n")
    assert lines[:2] == ["| GROUP | LAG | HOST |", "| --- | --- | --- |"]
    assert lines[3] == "| a\\|b | - | - |"


def test_sections_without_rows_have_their_heads() -> None:
    assert render([Section(ROWS.slice(0, 0), {"group": "GROUP"})], "text", SAID) == "GROUP"


def test_a_legend_has_the_words_of_rows_that_are_shown_and_no_others() -> None:
    rows = pa.table(
        {
            "verdict": ["idle", "lost", "behind", None],
            "findings": [["a", "b"], [], ["c"], None],
            "is_problem": [False, True, False, False],
        }
    )
    section = Section(rows, {"verdict": "VERDICT"}, name="lag", problem="is_problem")
    other = Section(rows.slice(2), {"verdict": "VERDICT"}, name="other")
    meanings = {word: f"means {word}" for word in ("behind", "lost", "idle", "unread")}

    def legend(wanted: OutputFormat) -> list[str]:
        return shown_tables([section, other], wanted).legend("lag", "verdict", meanings)

    assert legend(OutputFormat("text")) == [
        *("behind: means behind", "lost: means lost", "idle: means idle"),
    ]
    assert legend(OutputFormat("text", top=1)) == ["lost: means lost"]
    assert legend(OutputFormat("markdown", only_problems=True)) == ["lost: means lost"]
    assert legend(OutputFormat("text", table="other")) == []
    letters = {letter: letter.upper() for letter in "abcd"}
    shown = shown_tables([section], OutputFormat("text", top=2))
    assert shown.legend("lag", "findings", letters) == ["a: A", "b: B"]
