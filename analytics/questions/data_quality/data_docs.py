"""Data Docs of great-expectations: what came of expectations, a page a table and suite.

Renderers of great-expectations make the content of a page from validation results, as for any
team. Its own frame around that loads styles and scripts from other hosts, so the frame is ours
(`templates/data_docs.j2`): styles without a script, and nothing is asked for. What it has no type
for is shown by one that is registered here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from html import escape
from typing import Any, Final, NamedTuple

from jinja2 import ChoiceLoader, PackageLoader

from analytics.libraries_later import release_libraries
from analytics.questions.data_quality.great_expectations_engine import quiet_library
from analytics.questions.data_quality.judged_table import BROKEN, FAILED, PASSED
from schemas.expectation_suites import Expectation

INDEX: Final = "index.html"
_TEMPLATE: Final = "data_docs.j2"
_RUN: Final = "audit by groupscope"
_COLUMN: Final = "column"
_COLUMNS_IN_ORDER: Final = "expect_table_columns_to_match_ordered_list"
"""Its renderer needs the columns that there are, which a row of `data_quality` does not have."""
_NOT_IN_A_PATH: Final = re.compile(r"[^\w.-]", re.ASCII)
_ICONS: Final = {
    PASSED: ("fa-check-circle", "text-success"),
    FAILED: ("fa-times", "text-danger"),
    BROKEN: ("fa-exclamation-triangle", "text-warning"),
}

Expected = Mapping[tuple[str, str, str], Expectation]
"""By table, suite and name."""


@dataclass(frozen=True)
class Validation:
    """When tables of which dump were held against expectations.

    Attributes:
        dump: As a person names it.
        at: When.
    """

    dump: str
    at: datetime


class DocsPage(NamedTuple):
    """A file of Data Docs.

    Attributes:
        path: Below their folder, with `/`.
        html: What is in it.
    """

    path: str
    html: str


class _Suite(NamedTuple):
    """What came of the expectations that a suite has of a table.

    Attributes:
        table: The table.
        name: Of the suite.
        path: Of its page.
        rows: Of `data_quality`, one at least.
    """

    table: str
    name: str
    path: str
    rows: Sequence[Mapping[str, Any]]

    def count(self, outcome: str) -> int:
        """Return how many expectations came to that."""
        return sum(row["outcome"] == outcome for row in self.rows)

    @property
    def outcome(self) -> str:
        """The worst there is: what failed before what could not be looked at."""
        return next(each for each in (FAILED, BROKEN, PASSED) if self.count(each))


def data_docs(
    rows: Iterable[Mapping[str, Any]], expected: Expected, validation: Validation
) -> Iterator[DocsPage]:
    """Yield the pages, the index last.

    Args:
        rows: Of the table `data_quality`.
        expected: The expectations, as far as their arguments may be shown.
        validation: Of what they tell.
    """
    release_libraries()
    suites = _suites(rows)
    for each in suites:
        with quiet_library():
            html = _suite_page(each, expected, validation)
        yield DocsPage(each.path, html)
    with quiet_library():
        html = _index_page(suites, validation)
    yield DocsPage(INDEX, html)


def _suites(rows: Iterable[Mapping[str, Any]]) -> list[_Suite]:
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["table"], row["suite"]), []).append(row)
    folders = _folders(dict.fromkeys(suite for _, suite in found))
    return [
        _Suite(table, suite, f"{folders[suite]}/{table}.html", of_suite)
        for (table, suite), of_suite in found.items()
    ]


def _folders(suites: Iterable[str]) -> dict[str, str]:
    """Return the folder of each suite: its name, as far as an address takes it as it is."""
    found: dict[str, str] = {}
    for suite in suites:
        plain = name = _NOT_IN_A_PATH.sub("_", suite)
        number = 0
        while name in found.values():
            number += 1
            name = f"{number}-{plain}"
        found[suite] = name
    return found


# Validation results, as great-expectations has them.


def _suite_page(suite: _Suite, expected: Expected, validation: Validation) -> str:
    from great_expectations import __version__  # noqa: PLC0415 - heavy, as what follows
    from great_expectations.core import ExpectationSuiteValidationResult  # noqa: PLC0415
    from great_expectations.render.renderer.page_renderer import (  # noqa: PLC0415
        ValidationResultsPageRenderer,
    )

    results = [
        _result(row, expected.get((suite.table, suite.name, row["expectation"])))
        for row in suite.rows
    ]
    met = suite.count(PASSED)
    validated = ExpectationSuiteValidationResult(
        success=met == len(results),
        results=results,
        suite_name=suite.name,
        statistics={
            "evaluated_expectations": len(results),
            "successful_expectations": met,
            "unsuccessful_expectations": len(results) - met,
            "success_percent": 100 * met / len(results),
        },
        meta={
            "great_expectations_version": __version__,
            "run_id": {"run_name": _RUN, "run_time": validation.at.isoformat()},
            "batch_spec": {
                "data_asset_name": suite.table,
                "dump": validation.dump,
                "rows": suite.rows[0]["rows"],
            },
        },
    )
    document = ValidationResultsPageRenderer().render(validated)
    _without_link(document, suite.name)
    return _page(document, f"{suite.table}: {suite.name}", f"../{INDEX}")


def _without_link(document: Any, suite: str) -> None:  # noqa: ANN401 - of great-expectations
    """Take away the link to a page of the suite alone, which is not made.

    Raises:
        KeyError: great-expectations lays its heading out in another way.
    """
    heading = document.sections[0].content_blocks[0].subheader.string_template
    del heading["styling"]["params"]["expectation_suite_name"]
    heading["params"]["expectation_suite_name"] = suite


def _result(row: Mapping[str, Any], expected: Expectation | None) -> Any:  # noqa: ANN401
    """Return the result of an expectation."""
    from great_expectations.core import ExpectationValidationResult  # noqa: PLC0415
    from great_expectations.expectations.expectation_configuration import (  # noqa: PLC0415
        ExpectationConfiguration,
    )

    is_theirs = expected is not None and _is_shown_by_library(row, expected)
    if expected is not None and is_theirs:
        type_, kwargs, meta = row["type"], dict(expected.kwargs), {}
    else:
        type_, meta = _type_of_ours(), _description(row, expected)
        kwargs = _column_of(expected)
    is_broken = row["outcome"] == BROKEN
    return ExpectationValidationResult(
        success=row["outcome"] == PASSED,
        expectation_config=ExpectationConfiguration(type=type_, kwargs=kwargs, meta=meta),
        result=_values_of(row, is_theirs=is_theirs),
        exception_info={
            "raised_exception": is_broken,
            "exception_message": row["reason"] if is_broken else None,
            "exception_traceback": None,
        },
    )


def _is_shown_by_library(row: Mapping[str, Any], expected: Expectation) -> bool:
    """Return whether a renderer of great-expectations shows all that there is to say.

    It knows none of our types, and neither which rows they are about nor what a failure means; what
    broke may have arguments that it does not take.
    """
    return not (
        expected.is_own
        or expected.type == _COLUMNS_IN_ORDER
        or expected.where
        or expected.about
        or row["outcome"] == BROKEN
    )


def _values_of(row: Mapping[str, Any], *, is_theirs: bool) -> dict[str, Any]:
    """Return what was found, escaped: great-expectations writes values of results as they are."""
    unexpected, rows = row["unexpected_count"], row["rows"]
    example = None if row["example"] is None else escape(row["example"], quote=False)
    if unexpected is None:
        return {} if example is None else {"observed_value": example}
    found = {
        "element_count": rows,
        "unexpected_count": unexpected,
        "unexpected_percent": 100 * unexpected / rows if rows else 0.0,
        "partial_unexpected_list": [] if example is None else [example],
    }
    return found if is_theirs else {**found, "observed_value": f"{unexpected:,} not as expected"}


def _column_of(expected: Expectation | None) -> dict[str, Any]:
    """Return the one column that an expectation is about, by which pages are in sections."""
    column = None if expected is None else expected.kwargs.get(_COLUMN)
    # It is written into a heading as it is.
    return {_COLUMN: column} if isinstance(column, str) and column.isidentifier() else {}


def _description(row: Mapping[str, Any], expected: Expectation | None) -> dict[str, str]:
    """Return an expectation in words."""
    if expected is None:
        arguments, where = row["columns"], ""
    else:
        arguments = ", ".join(f"{name}={_text(each)}" for name, each in expected.kwargs.items())
        where = " and ".join(f"{name} in {_text(each)}" for name, each in expected.where.items())
    return {
        "name": row["expectation"],
        "call": f"{row['type']}({arguments})",
        "where": where,
        "severity": row["severity"],
        "about": row["reason"] or "",
    }


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


@cache
def _type_of_ours() -> str:
    """Register what is shown of expectations that great-expectations has no type for."""
    from great_expectations.expectations.expectation import BatchExpectation  # noqa: PLC0415
    from great_expectations.render.components import (  # noqa: PLC0415
        LegacyDiagnosticRendererType,
        LegacyRendererType,
    )
    from great_expectations.render.renderer.renderer import renderer  # noqa: PLC0415

    class ExpectRowsAsDescribed(BatchExpectation):
        """Shown, never judged: its `meta` says what is expected."""

        column: str | None = None

        def _validate(self, *_: object, **__: object) -> Any:  # noqa: ANN401
            raise TypeError("it was judged before it is shown")

        @classmethod
        @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
        def _prescriptive_renderer(
            cls,
            configuration: Any = None,  # noqa: ANN401
            *_: object,
            **__: object,
        ) -> Any:  # noqa: ANN401
            return [_described(configuration.meta)]

        @classmethod
        @renderer(renderer_type=LegacyDiagnosticRendererType.UNEXPECTED_STATEMENT)
        def _diagnostic_unexpected_statement_renderer(cls, *_: object, **__: object) -> Any:  # noqa: ANN401
            # What a failure means, or why the check broke, is said with the expectation.
            return []

    return str(ExpectRowsAsDescribed.expectation_type)


def _described(meta: Mapping[str, str]) -> Any:  # noqa: ANN401
    where = "\nof rows with $where" if meta["where"] else ""
    about = "\n$about" if meta["about"] else ""
    tags = {"name": "strong", "call": "code", "where": "code"}
    return _template(
        f"$name ($severity)\n$call{where}{about}",
        dict(meta),
        {name: {"tag": tag} for name, tag in tags.items()},
    )


def _template(template: str, params: dict[str, Any], styling: Mapping[str, Any]) -> Any:  # noqa: ANN401
    from great_expectations.render.components import (  # noqa: PLC0415
        RenderedStringTemplateContent,
    )

    return RenderedStringTemplateContent(
        {"template": template, "params": params, "styling": {"params": dict(styling)}}
    )


# The index, and what is around the content of every page.


def _index_page(suites: Sequence[_Suite], validation: Validation) -> str:
    from great_expectations.render.components import (  # noqa: PLC0415
        RenderedDocumentContent,
        RenderedHeaderContent,
        RenderedSectionContent,
        RenderedTableContent,
    )

    heading = RenderedHeaderContent(
        _template("$title", {"title": f"Data Docs of {validation.dump}"}, {}),
        subheader=_template("Validated at $at", {"at": f"{validation.at:%Y-%m-%dT%H:%M:%SZ}"}, {}),
        styling={"header": {"classes": ["alert", "alert-secondary"]}},
    )
    order = (FAILED, BROKEN, PASSED)
    table = RenderedTableContent(
        [_index_row(each) for each in sorted(suites, key=lambda each: order.index(each.outcome))],
        header_row=["Status", "Table", "Suite", "Rows", "Passed", "Failed", "Broken"],
        styling={"body": {"classes": ["table"]}},
    )
    document = RenderedDocumentContent(
        [RenderedSectionContent([heading, table], section_name="Overview")],
        renderer_type="SiteIndexPageRenderer",
    )
    return _page(document, "Data Docs", "")


def _index_row(suite: _Suite) -> list[Any]:
    icon = {"icon": {"tag": "i", "classes": ["fas", *_ICONS[suite.outcome]]}}
    link = {"table": {"tag": "a", "attributes": {"href": suite.path}}}
    counts = [suite.rows[0]["rows"], *map(suite.count, (PASSED, FAILED, BROKEN))]
    return [
        _template("$icon", {"icon": ""}, icon),
        _template("$table", {"table": suite.table}, link),
        _template("$suite", {"suite": suite.name}, {}),
        *(f"{each:,}" for each in counts),
    ]


def _page(document: Any, title: str, home: str) -> str:  # noqa: ANN401 - of great-expectations
    html: str = _view().render(document, template=_TEMPLATE, title=title, home=home)
    return html


@cache
def _view() -> Any:  # noqa: ANN401
    from great_expectations.render.view.view import DefaultJinjaPageView  # noqa: PLC0415

    view = DefaultJinjaPageView()
    theirs = [] if view.env.loader is None else [view.env.loader]
    view.env.loader = ChoiceLoader([*theirs, PackageLoader(__package__, "templates")])
    # Ids are unique without a random number, and the same results are the same page.
    view.env.filters["generate_html_element_uuid"] = str
    return view
