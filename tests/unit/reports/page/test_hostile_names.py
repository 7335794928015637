"""Ids, metadata, client ids and hosts are anybody's text: harmless in every form of a page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from hypothesis import example
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reports.page.build import page_of
from reports.page.forms import html_of, json_of, markdown_of, text_of
from reports.page.rows import harmless
from tests.support.examples import examples
from tests.support.page_tables import finding, workspace

CORPUS = (
    "<script>alert(1)</script>",
    "</style></title><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% for a in b %}",
    "=cmd|' /C calc'!A0",
    "\x1b[31mred\x1b[0m\x07\x1b]0;title\x07",
    "abc\u202etxt.exe\u2066\u200b",
    "a\x00b\r\nc\td\x85e\u2028f",
    "[click](javascript:alert(1)) ![x](http://x/y) <http://x> `a` ~~~ ``` | b",
    "# heading\n\n- item\n\n> quote",
    "&lt;script&gt;&#x3c;",
    "n" * 32_000,
    "\N{FAMILY}\N{COMBINING ACUTE ACCENT}" * 50,
)
NAMES = st.one_of(
    st.sampled_from(CORPUS),
    st.text(max_size=60),
    st.text("<>&\"'`|[]()!*_#=\\\x00\x1b\u202e\ud7ff\n", max_size=40),
)
ALLOWED = re.compile(
    "html|head|meta|title|link|style|body|header|nav|main|section|article|footer|div|span|strong"
    "|a|p|h[1-4]|wbr|ul|ol|li|dl|dt|dd|pre|code|time|details|summary|figure|figcaption"
    "|table|caption|thead|tbody|tr|th|td|svg|g|path|rect|line|text|circle|defs|clippath"
)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page_with(names: list[str]) -> object:
    groups = list(dict.fromkeys(names))
    findings = [finding(each, message=f"{each} did it", suggestion=f"do {each}") for each in groups]
    events = [
        {"group_id": each, "event": "left", "subject": each, "detail": each, "record_offset": 1}
        for each in groups
    ]
    return page_of(workspace(groups, findings, {"group_events": events}))


@examples(5, 25, names=st.lists(NAMES, min_size=1, max_size=4))
@example(names=["plain", "000\U0001d400\U0001d400\U0001d400" + 4 * "\U0001d4a9" + "\ud7fc"])
def test_no_name_is_more_than_text(names: list[str]) -> None:
    page = page_with(names)
    html = html_of(page)
    found = Elements()
    found.feed(html)
    assert {each for each in found.tags if not ALLOWED.fullmatch(each)} == {"script"}
    scripts = re.findall(r"<script.*?</script", html, re.DOTALL | re.IGNORECASE)
    assert len(scripts) == 1, "the page's own, which no name is in"
    assert scripts == re.findall(r"<script.*?</script", html_of(page_with([])), re.DOTALL)
    assert not {each for each in found.attributes if each.startswith("on")}
    text = text_of(page, 120)
    markdown = markdown_of(page)
    for form in (html, text, markdown, json_of(page)):
        assert {each for each in form if not each.isprintable()} <= {"\n"}
    made = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown)
    inline = [child.type for token in made for child in token.children or ()]
    assert not {"html_inline", "link_open", "image", "code_inline"} & set(inline)
    assert "html_block" not in {token.type for token in made}
    assert json.loads(json_of(page))["schema_version"] == 1


def test_a_long_name_is_whole_where_it_is_pointed_at() -> None:
    name = "n" * 32_000
    page = page_with([name, "other"])
    cell = next(row[0] for row in page.groups.rows if row[0].whole)
    assert cell.whole == name
    assert len(cell.text) <= 48
    assert f'title="{name}"' in html_of(page)


def test_what_does_not_print_is_written_out() -> None:
    assert harmless("a\u202eb\x00\ud800\U000e0001") == "a\\u202eb\\u0000\\ud800\\U000e0001"
    assert harmless("gr\u00fc\u00dfe \u96ea") == "gr\u00fc\u00dfe \u96ea"
