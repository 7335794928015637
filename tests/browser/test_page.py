"""The page in a real browser: nothing is asked for, nothing is wrong, nothing is out of sight."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from reports.page.build import page_of
from reports.page.forms import html_of
from tests.support.browser import VIOLATIONS, Browser, missing
from tests.support.page_tables import AT, finding, workspace

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

HOSTILE = ("<script>document.title = 1</script>", "x" * 32_000, "a\u202eb\x00c", '"><img src=x>')
GROUPS = [*(f"group-{n}" for n in range(40)), *HOSTILE]
FINDINGS = [finding(each) for each in GROUPS[30:]]
PLACE = {"topic": "orders", "partition": 0}
TABLES = {
    "group_churn": [{"group_id": each, "epochs": 4, "storms": 1} for each in GROUPS],
    "rebalances": [
        {"group_id": each, "at": AT, "member_count": n} for n, each in enumerate(GROUPS)
    ],
    "offset_expiration": [
        {"group_id": each, **PLACE, "expires_at": AT, "status": "scheduled"} for each in GROUPS
    ],
    "offset_removals": [
        {"group_id": each, **PLACE, "removed_at": AT, "cause": "expired", "verdict": "early"}
        for each in GROUPS
    ],
    "share_backlog": [
        {"group_id": each, **PLACE, "start_offset": 4, "status": "blocked"} for each in GROUPS
    ],
    "share_batches": [
        {
            "group_id": each,
            **PLACE,
            "first_offset": 4,
            "last_offset": 9,
            "delivery_state_name": "AVAILABLE",
        }
        for each in GROUPS
    ],
    "group_events": [
        {"group_id": each, "at": AT, "event": "joined", "subject": each, "detail": each}
        for each in GROUPS
    ],
}


PAGES = ("hostile", "failover", "incident")


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of hostile names, that of the bundled failover, and that of its incident."""
    if request.param == "failover":
        audited: Path = request.getfixturevalue("failover_audited")
        return audited / "report" / "index.html"
    if request.param == "incident":
        incident: Path = request.getfixturevalue("failover_incident")
        return incident / "report" / "incident.html"
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(html_of(page_of(workspace(GROUPS, FINDINGS, TABLES))), encoding="utf-8")
    return path


def test_it_asks_for_nothing_and_logs_nothing(window: Browser, page: Path) -> None:
    window.log("performance")
    window.log("browser")
    window.open(page)
    assert window.requests() == [page.as_uri()]
    assert window.errors() == []
    assert window.run("return document.title").startswith(("Audit of ", "Incident of "))
    own = 1 if window.run("return document.title").startswith("Audit of ") else 0
    assert window.run("return document.scripts.length + document.images.length") == own


@pytest.mark.parametrize(
    "width", [360, 1280, *(pytest.param(each, marks=pytest.mark.long) for each in (768, 1920))]
)
def test_nothing_is_wider_than_the_window(window: Browser, page: Path, width: int) -> None:
    window.show(width)
    window.open(page)
    window.run("for (const each of document.querySelectorAll('details')) each.open = true")
    assert window.run("return document.documentElement.scrollWidth") == width


VALUES = r"(?:>= |< |~ )*(?:\d{4}-\d\d-\d\dT[\d:.]+Z|\d+ (?:d|h|min|s|ms|kB|MB)\b)|>= \S+"
SHORT_WORDS = r"\b(?<!\S)[A-Za-z]{2,10}\b"
OPENED = "for (const each of document.querySelectorAll('details')) each.open = true"


@pytest.mark.parametrize(
    ("width", "whole"),
    [
        (360, ".t, td.n"),
        *(pytest.param(each, "td.n", marks=pytest.mark.long) for each in (1280, 1920)),
    ],
)
def test_no_time_number_bound_or_short_word_goes_on_in_the_next_line(
    window: Browser, page: Path, width: int, whole: str
) -> None:
    """In between, and beside charts, the clock of a time in a cell stands below the date."""
    window.show(width)
    window.open(page)
    window.run(OPENED)
    assert window.broken(f"{VALUES}|{SHORT_WORDS}", whole) == []


@pytest.mark.parametrize("width", [1280, pytest.param(1920, marks=pytest.mark.long)])
def test_nothing_scrolls_sideways_where_there_is_room(
    window: Browser, page: Path, width: int
) -> None:
    window.show(width)
    window.open(page)
    window.run(OPENED)
    wide = window.run(
        "return [...document.querySelectorAll('.scroll')]"
        ".filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"
    )
    assert wide == []
    assert window.run("return document.querySelector('main').clientWidth") > width * 0.9


@pytest.mark.parametrize("width", [1920, pytest.param(360, marks=pytest.mark.long)])
def test_charts_are_as_wide_as_their_place(window: Browser, page: Path, width: int) -> None:
    window.show(width)
    window.open(page)
    window.run(OPENED)
    shares = window.run(
        "return [...document.querySelectorAll('.chart svg')].filter(each => "
        "each.checkVisibility()).map(each => each.getBoundingClientRect().width / "
        "each.closest('figure').getBoundingClientRect().width)"
    )
    assert shares
    assert min(shares) > 0.75


def test_the_caption_of_a_table_that_scrolls_is_on_a_narrow_screen(
    window: Browser, page: Path
) -> None:
    window.show(360)
    window.open(page)
    window.run(OPENED)
    right = "Math.max(...[...document.querySelectorAll('caption span')].map(each => "
    assert window.run(f"return {right}each.getBoundingClientRect().right))") <= 360


@pytest.mark.parametrize(
    "is_dark", [pytest.param(False, marks=pytest.mark.long), True], ids=["light", "dark"]
)
def test_texts_of_charts_stand_out(window: Browser, page: Path, is_dark: bool) -> None:
    """Axe looks at no text of a drawing."""
    window.show(1280, is_dark=is_dark)
    window.open(page)
    window.run(OPENED)
    least = window.run(
        """
        const numbers = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const light = colour => numbers(colour).map(each => each / 255)
          .map(each => each <= .04045 ? each / 12.92 : ((each + .055) / 1.055) ** 2.4)
          .reduce((sum, each, n) => sum + each * [.2126, .7152, .0722][n], 0);
        return [...document.querySelectorAll(".chart text")].map(each => {
          const of = [getComputedStyle(each).fill,
            getComputedStyle(each.closest("figure")).backgroundColor].map(light).sort();
          return (Math.max(...of) + .05) / (Math.min(...of) + .05);
        }).reduce((least, each) => Math.min(least, each), 21);
        """
    )
    assert 4.5 <= least < 21


def test_every_link_leads_to_something_that_is_then_seen(window: Browser, page: Path) -> None:
    window.show(1280)
    window.open(page)
    lost = window.run(
        """
        const names = [...new Set([...document.querySelectorAll("a")].map(
          each => each.getAttribute("href")))];
        const lost = names.filter(each => !document.getElementById(each.slice(1)));
        // A browser follows no more than 200 links within ten seconds: some of each kind are.
        const step = Math.ceil(names.length / 150);
        for (const name of names.filter((_, n) => n % step == 0)) {
          location.hash = name;
          const target = document.querySelector(":target");
          if (!target || !target.checkVisibility()) lost.push(name);
        }
        return lost;
        """
    )
    assert lost == []


SIZES = {
    "360-light": (360, False),
    "360-dark": (360, True),
    "1280-light": (1280, False),
    "1280-dark": (1280, True),
}
QUICK = {("hostile", "360-dark"), ("failover", "1280-light"), ("incident", "360-dark")}


@pytest.mark.parametrize(
    ("page", "width", "is_dark"),
    [
        pytest.param(
            page,
            *SIZES[size],
            id=f"{page}-{size}",
            marks=() if (page, size) in QUICK else pytest.mark.long,
        )
        for page, size in product(PAGES, SIZES)
    ],
    indirect=["page"],
    scope="module",
)
def test_axe_finds_nothing(window: Browser, page: Path, width: int, is_dark: bool) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    source = Path(str(axe.__file__)).with_name("axe.min.js").read_text(encoding="utf-8")
    window.show(width, is_dark=is_dark)
    window.open(page)
    window.run("for (const each of document.querySelectorAll('details')) each.open = true")
    # What the protocol runs is not under the page's own policy.
    window.ask("Runtime.evaluate", expression=source)
    answer = window.ask(
        "Runtime.evaluate",
        expression=f"axe.run({{{VIOLATIONS}}}).then(found => JSON.stringify(found.violations.map("
        "each => [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])))",
        awaitPromise=True,
    )
    assert answer["result"]["value"] == "[]"
    assert window.errors() == []


@pytest.fixture
def audit(window: Browser, failover_audited: Path) -> Browser:
    """A window with the page of the bundled failover, as it is opened."""
    window.show(1280)
    window.open(failover_audited / "report" / "index.html")
    return window


def press(window: Browser, *keys: str) -> None:
    """Press keys, one after the other."""
    codes = {"Tab": 9, "Enter": 13}
    for each in keys:
        what = {"key": each, "code": each, "windowsVirtualKeyCode": codes[each]}
        text = {"text": "\r"} if each == "Enter" else {}
        window.ask("Input.dispatchKeyEvent", type="keyDown", **what, **text)
        window.ask("Input.dispatchKeyEvent", type="keyUp", **what)


def tab_to(window: Browser, selector: str) -> None:
    """Go with the keyboard to what a selector names."""
    for _ in range(400):
        press(window, "Tab")
        if window.run("return document.activeElement.matches(arguments[0])", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


def seen(window: Browser, selector: str) -> list[str]:
    found: list[str] = window.run(
        "return [...document.querySelectorAll(arguments[0])]"
        ".filter(each => each.checkVisibility()).map(each => each.textContent.trim())",
        selector,
    )
    return found


def test_a_person_filters_by_group_and_jumps_to_it_with_the_keyboard_alone(audit: Browser) -> None:
    tab_to(audit, "#filter")
    audit.ask("Input.insertText", text="courier-app")
    assert seen(audit, "#groups-table tbody th") == ["courier-app"]
    findings = seen(audit, ".finding .message")
    assert findings
    assert all("courier-app" in each for each in findings)
    (shown,) = seen(audit, ".tools output")
    assert shown.startswith(f"{len(findings)} findings, ") or len(findings) == 1
    press(audit, "Enter")
    story = audit.run("return document.activeElement.closest('.story').textContent")
    assert "courier-app" in story
    assert audit.run("return document.activeElement.closest('.story').open")


def test_a_person_filters_by_topic_and_all_is_back_without_one(audit: Browser) -> None:
    before = len(seen(audit, "#lag-table tbody tr"))
    tab_to(audit, "#filter")
    audit.ask("Input.insertText", text="tracking-events")
    place = seen(audit, "#lag-table thead th").index("Topic") + 1
    topics = seen(audit, f"#lag-table tbody tr > :nth-child({place})")
    assert topics
    assert set(topics) == {"tracking-events"}
    audit.run(
        "const filter = document.getElementById('filter');"
        "filter.value = ''; filter.dispatchEvent(new Event('input'))"
    )
    assert len(seen(audit, "#lag-table tbody tr")) == before


def test_a_person_sorts_by_a_column_with_the_keyboard_alone(audit: Browser) -> None:
    heads = seen(audit, "#groups-table thead th")
    place = heads.index("Lag") + 1
    cells = f"#groups-table tbody tr > :nth-child({place})"
    as_made = seen(audit, cells)
    tab_to(audit, f"#groups-table thead th:nth-child({place}) button")

    def numbers() -> list[int]:
        known = [each for each in seen(audit, cells) if each != "-"]
        # A sum that leaves something out is "at least" so much.
        return [int(each.removeprefix(">= ").replace(",", "")) for each in known]

    press(audit, "Enter")
    assert numbers() == sorted(numbers())
    assert audit.run("return document.querySelectorAll('[aria-sort=ascending]').length") == 1
    press(audit, "Enter")
    assert numbers() == sorted(numbers(), reverse=True)
    press(audit, "Enter")
    assert seen(audit, cells) == as_made
    assert audit.errors() == []


@pytest.mark.parametrize("table", ["groups-table", "lag-table"])
def test_on_a_narrow_screen_the_lag_is_on_it(audit: Browser, table: str) -> None:
    audit.show(360)
    place = seen(audit, f"#{table} thead th").index("Lag") + 1
    right = audit.run(
        "return document.querySelector(arguments[0]).getBoundingClientRect().right",
        f"#{table} tbody tr > :nth-child({place})",
    )
    assert right <= 360


def test_a_person_jumps_to_the_view_of_a_topic_with_the_keyboard_alone(audit: Browser) -> None:
    assert seen(audit, ".topic .inside") == []
    tab_to(audit, "#filter")
    audit.ask("Input.insertText", text="invoices")
    press(audit, "Enter")
    assert len(seen(audit, ".topic .inside")) == 1
    name = audit.run(
        "return document.activeElement.closest('.topic').querySelector('h3').innerText"
    )
    assert name.split()[-1] == "invoices"
    (shown,) = seen(audit, ".tools output")
    assert "1 topic, " in shown


def test_the_name_of_a_topic_in_a_table_leads_to_its_view(audit: Browser) -> None:
    place = seen(audit, "#lag-table thead th").index("Topic") + 1
    name = audit.run(
        "const link = document.querySelector(arguments[0]); link.click(); return link.textContent",
        f"#lag-table tbody tr > :nth-child({place}) a",
    )
    (heading,) = seen(audit, ".topic[open] h3")
    assert heading.split()[-1] == name


def test_printed_what_is_closed_stays_closed(audit: Browser) -> None:
    audit.show(1280, media="print")
    assert seen(audit, ".story .inside") == []
    audit.run("document.querySelector('.topic').open = true")
    assert len(seen(audit, ".story .inside")) == 1
    # Nor is it offered to be opened.
    assert seen(audit, "details.do > summary") == []


def test_of_an_axis_that_is_drawn_twice_one_drawing_is_seen(
    window: Browser, failover_incident: Path
) -> None:
    for width, media, drawing in (
        (360, "", "narrow"),
        (1280, "", "broad"),
        (1920, "", "broad"),
        (800, "print", "broad"),
    ):
        window.show(width, media=media)
        window.open(failover_incident / "report" / "incident.html")
        shown = window.run(
            "return [...document.querySelectorAll('#axis .chart')]"
            ".filter(each => each.checkVisibility()).map(each => each.classList[1])"
        )
        assert shown == [drawing]
