"""Data Docs: pages of great-expectations that are made of rows, ask for nothing and run nothing."""

from __future__ import annotations

import re
from html import unescape
from pathlib import PurePosixPath
from typing import Any

import pytest

from analytics.questions.data_quality.data_docs import data_docs
from schemas import table
from tests.support.quality_rows import HOSTILE, TEAM, VALIDATION, judged_rows, quality_row

ROWS, EXPECTED = judged_rows(table("lag"))


def pages_of(rows: list[dict[str, Any]], expected: Any = EXPECTED) -> dict[str, str]:
    return {page.path: page.html for page in data_docs(rows, expected, VALIDATION)}


def words_of(html: str) -> str:
    """What a person reads of a page."""
    body = html.partition("<body>")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return pages_of(ROWS)


@pytest.fixture(scope="module")
def team(pages: dict[str, str]) -> str:
    return pages["our_lag.json/lag.html"]


def test_there_is_a_page_for_each_table_and_suite_and_an_index(pages: dict[str, str]) -> None:
    assert list(pages) == ["our_lag.json/lag.html", "contract/lag.html", "index.html"]


def test_what_the_library_has_a_type_for_is_said_in_its_words(
    pages: dict[str, str], team: str
) -> None:
    assert "values must never be null." in words_of(pages["contract/lag.html"])
    assert "100% not null" in words_of(pages["contract/lag.html"])
    assert "values must belong to this set: orders" in words_of(team)
    assert "1 unexpected values found. ≈8.333% of 12 total rows." in words_of(team)
    assert "Must have less than or equal to 7 rows. 12" in words_of(team)


def test_what_it_has_no_type_for_is_said_by_name_arguments_and_rows(team: str) -> None:
    words = words_of(team)
    assert f"nobody behind {HOSTILE} (critical)" in words
    assert 'expect_rows_at_most(column="lag", value=1000)' in words
    assert f'of rows with topic in ["{HOSTILE}"]' in words
    assert "3 not as expected" in words
    assert 'expect_table_columns_to_match_ordered_list(column_list=["group_id", "topic"])' in words


def test_what_broke_says_why(team: str) -> None:
    words = words_of(team)
    assert 'expect_column_values_to_match_regex(column="topic", regex="(")' in words
    assert "missing ), unterminated subpattern" in words
    assert f"no column {HOSTILE}" in words
    assert "raised an exception" not in words
    assert team.count("fa-exclamation-triangle text-warning") == 2


def test_counts_are_those_of_the_rows(pages: dict[str, str], team: str) -> None:
    assert (
        "Evaluated Expectations 6 Successful Expectations 1 Unsuccessful Expectations 5"
        in words_of(team)
    )
    head, *rows = re.findall(r"<tr>.*?</tr>", pages["index.html"], re.DOTALL)
    assert words_of(f"<body>{head}") == "Status Table Suite Rows Passed Failed Broken"
    contract = sum(row["suite"] == "contract" for row in ROWS)
    assert [words_of(f"<body>{each}") for each in rows] == [
        f"lag {TEAM} 12 1 3 2",
        f"lag contract 12 {contract} 0 0",
    ]
    assert "fa-times text-danger" in rows[0]
    assert "fa-check-circle text-success" in rows[1]


def test_text_of_a_dump_is_text_and_nothing_is_asked_for(pages: dict[str, str]) -> None:
    for html in pages.values():
        assert "<script" not in html
        assert "//" not in re.sub(r"/\*.*?\*/", "", html)
        assert not re.search(r"\son\w+=", html)


def test_every_link_leads_to_a_page_or_a_place_in_one(pages: dict[str, str]) -> None:
    for path, html in pages.items():
        for link in re.findall(r'\bhref="([^"]*)"', html):
            if link.startswith("#"):
                assert f'id="{link[1:]}"' in html or f"id={link[1:]}" in html
            elif link != "data:,":
                parts: list[str] = []
                for part in (*PurePosixPath(path).parent.parts, *PurePosixPath(link).parts):
                    parts = parts[:-1] if part == ".." else [*parts, part]
                assert "/".join(parts) in pages


def test_the_same_rows_are_the_same_pages(pages: dict[str, str]) -> None:
    assert pages_of(ROWS) == pages


def test_where_arguments_may_have_names_in_them_none_is_shown() -> None:
    contract = {key: each for key, each in EXPECTED.items() if key[1] == "contract"}
    rows = [{**row, "example": None} for row in ROWS]
    page = pages_of(rows, contract)["our_lag.json/lag.html"]
    assert "orders" not in page
    assert "expect_column_values_to_be_in_set(topic)" in words_of(page)


def test_suites_whose_names_become_alike_have_pages_of_their_own() -> None:
    row = quality_row(next(iter(EXPECTED.values())))
    rows = [{**row, "suite": name} for name in ("a b.json", "a?b.json", "a_b.json")]
    assert list(pages_of(rows)) == [
        "a_b.json/lag.html",
        "1-a_b.json/lag.html",
        "2-a_b.json/lag.html",
        "index.html",
    ]
