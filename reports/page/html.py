"""A page as HTML: one file, nothing in it runs and nothing is loaded."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from reports.page.model import Page

SIGNS: Final = {
    "critical": "\N{BLACK DIAMOND}",
    "warning": "\N{BLACK UP-POINTING TRIANGLE}",
    "info": "\N{WHITE CIRCLE}",
    "good": "\N{CHECK MARK}",
    "neutral": "\N{BULLET}",
}
"""What tells tones apart without colour."""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html_of(page: Page) -> str:
    """Return the file."""
    return rendered("page.html.j2", page)


def rendered(template: str, page: object) -> str:
    """Return a page in one of the templates."""
    return _template(template).render(page=page, signs=SIGNS, policy=_POLICY)


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("reports.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # SVGs are our own, and their texts are escaped by who drew them.
    environment.filters["drawn"] = _drawn
    return environment.get_template(name)


def _drawn(svg: Any) -> Markup:  # noqa: ANN401 - as jinja hands it over
    return Markup(svg)  # noqa: S704 - a drawing of `reports.charts`, never a text of a dump
