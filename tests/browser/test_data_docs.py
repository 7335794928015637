"""Data Docs in a real browser: nothing is asked for, nothing runs, what failed can be picked."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.questions.data_quality.data_docs import data_docs
from schemas import table
from tests.support.browser import VIOLATIONS, Browser, missing
from tests.support.quality_rows import VALIDATION, judged_rows

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

PATHS = ("index.html", "our_lag.json/lag.html", "contract/lag.html")
GUIDELINES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
SEEN = (
    "return [...document.querySelectorAll(arguments[0])].filter(each => each.checkVisibility())"
    ".length"
)


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for page in data_docs(*judged_rows(table("lag")), VALIDATION):
        path = folder / page.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(page.html, encoding="utf-8")
    return folder


@pytest.mark.parametrize("path", PATHS)
def test_it_asks_for_nothing_runs_nothing_and_logs_nothing(
    window: Browser, docs: Path, path: str
) -> None:
    window.log("performance")
    window.log("browser")
    window.open(docs / path)
    assert window.requests() == [(docs / path).as_uri()]
    assert window.errors() == []
    assert window.run("return document.scripts.length + document.images.length") == 0
    assert window.run("return document.title") in {
        "Data Docs",
        "lag: contract",
        "lag: our lag.json",
    }


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(
    window: Browser, docs: Path, path: str, width: int
) -> None:
    window.show(width)
    window.open(docs / path)
    assert window.run("return document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("width", [360, 1280])
def test_no_short_word_is_broken(window: Browser, docs: Path, path: str, width: int) -> None:
    window.show(width)
    window.open(docs / path)
    assert window.broken(r"(?<!\S)[A-Za-z0-9]{2,10}(?!\S)", "th") == []


def test_the_index_leads_to_a_page_and_the_page_back(window: Browser, docs: Path) -> None:
    window.open(docs / "index.html")
    window.run("document.querySelector('td a').click()")
    assert window.run("return document.title") == "lag: our lag.json"
    window.run("document.querySelector('main p a').click()")
    assert window.run("return document.title") == "Data Docs"


def test_a_person_sees_only_what_failed_or_broke_with_the_keyboard_alone(
    window: Browser, docs: Path
) -> None:
    window.show(1280)
    window.open(docs / "our_lag.json/lag.html")
    assert window.run(SEEN, ".fa-check-circle") == 1
    # The link to the index comes first.
    for key, code in (("Tab", 9), ("Tab", 9)):
        for kind in ("keyDown", "keyUp"):
            what = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            window.ask("Input.dispatchKeyEvent", type=kind, **what)
    assert window.run("return document.activeElement.id") == "failed-only"
    space = {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32}
    window.ask("Input.dispatchKeyEvent", type="keyDown", text=" ", **space)
    window.ask("Input.dispatchKeyEvent", type="keyUp", **space)
    assert window.run(SEEN, ".fa-check-circle") == 0
    assert window.run(SEEN, "td .fa-times") == 3
    assert window.run(SEEN, "td .fa-exclamation-triangle") == 2
    window.open(docs / "contract/lag.html")
    window.run("document.getElementById('failed-only').click()")
    # Every section of it is met.
    assert window.run(SEEN, "table.table:not(.table-sm)") == 0


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_that_guidelines_forbid(
    window: Browser, docs: Path, path: str, is_dark: bool
) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    source = Path(str(axe.__file__)).with_name("axe.min.js").read_text(encoding="utf-8")
    window.show(1280, is_dark=is_dark)
    window.open(docs / path)
    # What the protocol runs is not under the page's own policy.
    window.ask("Runtime.evaluate", expression=source)
    answer = window.ask(
        "Runtime.evaluate",
        expression=f"axe.run({{{VIOLATIONS}, runOnly: {GUIDELINES}}})"
        ".then(found => JSON.stringify(found.violations.map("
        "each => [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])))",
        awaitPromise=True,
    )
    assert answer["result"]["value"] == "[]"
