"""Names are anybody's text: harmless in every form of an answer, and whole in JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reports.answers.usage import placement_text
from reports.layout.section import Section
from reports.plain_text import paragraphs
from reports.row_formats import render
from tests.unit.reports.page.test_hostile_names import CORPUS

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1")
NAMES = st.one_of(
    st.sampled_from([*CORPUS, *FORMULAS]),
    # A file that is UTF-8 has no lone surrogates; names with them are undecoded records.
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
)


def answer(names: list[str], output_format: str) -> str:
    rows = pa.table({"group_id": pa.array(names, pa.string()), "lag": [*range(len(names))]})
    return render([Section(rows, {"group_id": "GROUP", "lag": "LAG"})], output_format, {})


@settings(max_examples=60)
@given(st.lists(NAMES, min_size=1, max_size=4))
def test_a_spreadsheet_is_given_no_formula_and_every_name(names: list[str]) -> None:
    _, *rows = csv.reader(io.StringIO(answer(names, "csv"), newline=""))
    said = [group for group, _ in rows]
    assert not {each[0] for each in said if each} & set("=+-@\t\r")
    assert [each.removeprefix("'") for each in said] == [each.removeprefix("'") for each in names]


@settings(max_examples=60)
@given(st.lists(NAMES, min_size=1, max_size=4))
def test_json_has_every_name_as_it_is(names: list[str]) -> None:
    assert [each["group_id"] for each in json.loads(answer(names, "json"))["rows"]] == names


@settings(max_examples=60)
@given(st.lists(NAMES, min_size=1, max_size=4))
@example(["\U0003d000"])
def test_a_terminal_shows_a_line_a_row_and_nothing_else(names: list[str]) -> None:
    text = answer(names, "text")
    assert {each for each in text if not each.isprintable()} <= {"\n"}
    assert len([line for line in text.split("\n") if line]) >= 1 + len(names)


class Placed(NamedTuple):
    partitions: int | None
    misplaced: list[tuple[str, int, int]]
    misplaced_groups: int = 1
    fits: int | None = None


@pytest.mark.parametrize("name", CORPUS)
def test_a_sentence_beside_a_table_shows_a_name_and_nothing_else(name: str) -> None:
    (line,) = placement_text(Placed(50, [(name, 3, 9)])).splitlines()
    assert paragraphs([line], 120).replace("\n", "").isprintable()
    assert paragraphs([f"group {name}"], 120).replace("\n", "").isprintable()


@pytest.mark.parametrize("name", CORPUS)
def test_markdown_makes_nothing_but_a_table_of_it(name: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    made = parser.parse(answer([name], "markdown"))
    inline = [child.type for token in made for child in token.children or ()]
    assert not {"html_inline", "link_open", "image"} & set(inline)
    assert "html_block" not in {token.type for token in made}
    assert sum(token.type == "tr_open" for token in made) == 2
