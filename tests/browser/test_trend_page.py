"""The page of a trend in a real browser: it asks for nothing, fits, and axe finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.page.trend import html_of, trend_page
from tests.support.browser import VIOLATIONS, Browser, missing
from tests.support.trend_of_held import COMMAND, trend_of_held

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answer = trend_of_held()
    made = trend_page(answer.long_tables, answer.figures, answer.cannot_tell, COMMAND, 3)
    path = tmp_path_factory.mktemp("page") / "trend.html"
    path.write_text(html_of(made), encoding="utf-8")
    return path


def test_it_asks_for_nothing_runs_nothing_and_logs_nothing(window: Browser, page: Path) -> None:
    window.log("performance")
    window.log("browser")
    window.open(page)
    assert window.requests() == [page.as_uri()]
    assert window.errors() == []
    assert window.run("return document.scripts.length + document.images.length") == 0
    assert window.run("return document.title") == "Trend of 3 audits"


@pytest.mark.parametrize(
    ("width", "media"), [(360, ""), (1280, ""), (1920, ""), (800, "print"), (1280, "print")]
)
def test_nothing_is_wider_than_the_window(
    window: Browser, page: Path, width: int, media: str
) -> None:
    window.show(width, media=media)
    window.open(page)
    assert window.run("return document.documentElement.scrollWidth") == width


def test_what_is_new_worse_and_reached_is_on_the_first_screen(window: Browser, page: Path) -> None:
    window.show(1280)
    window.open(page)
    heads = window.run(
        "return [...document.querySelectorAll('main .trio h3')].filter(each => "
        "each.getBoundingClientRect().bottom < innerHeight).map(each => each.textContent)"
    )
    assert heads[:3] == ["What is new", "What got worse", "When a limit is reached"]


def test_every_link_leads_somewhere(window: Browser, page: Path) -> None:
    window.open(page)
    lost = window.run(
        "return [...document.querySelectorAll('a')].map(each => each.getAttribute('href'))"
        ".filter(each => !document.getElementById(each.slice(1)))"
    )
    assert lost == []


@pytest.mark.parametrize(
    ("width", "is_dark"),
    [
        (360, True),
        (1280, False),
        pytest.param(360, False, marks=pytest.mark.long),
        pytest.param(1280, True, marks=pytest.mark.long),
    ],
    ids=["360-dark", "1280-light", "360-light", "1280-dark"],
)
def test_axe_finds_nothing(window: Browser, page: Path, width: int, is_dark: bool) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    source = Path(str(axe.__file__)).with_name("axe.min.js").read_text(encoding="utf-8")
    window.show(width, is_dark=is_dark)
    window.open(page)
    # What the protocol runs is not under the page's own policy.
    window.ask("Runtime.evaluate", expression=source)
    answer = window.ask(
        "Runtime.evaluate",
        expression=f"axe.run({{{VIOLATIONS}}}).then(found => JSON.stringify(found.violations.map("
        "each => [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])))",
        awaitPromise=True,
    )
    assert answer["result"]["value"] == "[]"
