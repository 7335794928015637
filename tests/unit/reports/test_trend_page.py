"""What people read of a trend: its first lines and its page; names of a dump are only shown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from analytics.questions.question import Answer
from reports.answers.trend import lines_of, trend_text
from reports.layout.output_format import OutputFormat
from reports.page.trend import TrendPage, html_of, trend_page
from tests.support.trend_of_held import COMMAND, HOSTILE, trend_of_held


@pytest.fixture(scope="module")
def answer() -> Answer:
    return trend_of_held()


@pytest.fixture(scope="module")
def page(answer: Answer) -> TrendPage:
    tables, figures = answer.long_tables, answer.figures
    return trend_page(tables, figures, answer.cannot_tell, COMMAND, 3)


def test_the_first_lines_say_what_is_new_what_got_worse_and_when_limits_are_reached(
    answer: Answer,
) -> None:
    other, prod = lines_of(answer.long_tables, answer.figures)
    assert [each.text for each in prod.new] == ["5 groups that were not there"]
    worse = [each.text for each in prod.worse]
    assert worse[0].startswith("offsets_expired, 7 before, 12 now: offsets of ")
    assert prod.worse[0].severity == "critical"
    assert [each for each in worse if each.endswith("(+105 a day)")] == worse[1:]
    assert len(worse) == 4
    limits = [each.text for each in prod.limits]
    # 4 kB of 10 kB, and 2 kB more a day.
    assert limits[0] == (
        "the disk of broker-1 (10.0 kB) is full by 2026-11-06T00:00:00.000Z at the latest: "
        "4.0 kB of it are in the dump, 2.0 kB more a day"
    )
    assert limits[1].startswith("retention reaches ")
    assert limits[1].endswith(
        "in orders-0 about 2026-11-05T00:00:00.000Z: 20 h are left, 1 d 6 h before"
    )
    assert [each.text for each in prod.cannot_tell] == [
        (
            "lag: that of 1 partition is not known; "
            "how fast the lag grows: that of some partitions is not known"
        )
    ]
    assert (
        other.cannot_tell[0].text == "nothing shows what changed: there is one run of the cluster"
    )


def test_what_is_only_a_bound_carries_its_sign(answer: Answer) -> None:
    text = "".join(
        trend_text(answer.long_tables, answer.figures, OutputFormat("text", is_wide=True), {})
    )
    assert re.search(r">= 24\d\d ", text)
    assert "<= 2026-11-06T00:00:00.000Z" in text
    assert "~ 2026-11-05T00:00:00.000Z" in text


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        self.found.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_names_are_shown_and_never_taken_for_markup(page: TrendPage) -> None:
    tags = Tags()
    tags.feed(html_of(page))
    assert not tags.found & {"script", "img", "b"}
    text = "".join(tags.text)
    assert HOSTILE[0] in text
    assert "a\\u202eb\\u0000c" in text
    assert COMMAND in text
    assert "prod <b>" in text


def test_each_cluster_has_its_part_and_one_of_one_run_no_chart(page: TrendPage) -> None:
    other, prod = page.clusters
    assert (other.cluster.text, prod.cluster.text) == ("other", "prod <b>")
    assert [each.head for each in prod.columns] == [
        "What is new",
        "What got worse",
        "When a limit is reached",
    ]
    assert other.figures == ()
    assert {each.otherwise for each in other.columns} == {
        "There is one run: nothing shows what changed."
    }
    assert {each.title for each in prod.figures} >= {
        "Lag of all groups, in records",
        "Bytes of the internal topics",
    }
    assert len(page.gaps) == 1


def test_a_chart_is_said_in_words_too(page: TrendPage) -> None:
    (lag,) = (each for each in page.clusters[1].figures if each.title.startswith("Lag"))
    assert re.fullmatch(
        r"From 2026-11-02T00:00:00\.000Z to 2026-11-03T00:00:00\.000Z: lag from \d+ to [\d,]+ "
        r"\(a bound\)\. A hollow mark is only a bound\.",
        lag.says,
    )
