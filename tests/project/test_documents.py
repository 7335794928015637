"""What the pages say can be tried: their examples work and their links lead somewhere."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from analytics.questions.findings.configured_rules import configured_rules
from jobs.cli.settings_files import read_settings
from schemas.catalog import parse_record_type
from schemas.finding_rules import finding_rules
from tests.support.checkout import files_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [str(path) for path in files_of(ROOT) if path.suffix == ".md"]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
PICTURE = re.compile(r'(?:src|srcset)="(?!https?:)([^"]+)"')


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_of_the_repository(page: str, repository: Path) -> None:
    text = (repository / page).read_text(encoding="utf-8")
    linked = LINK.findall(text) + PICTURE.findall(text)
    folder = (repository / page).parent
    assert [link for link in linked if not (folder / link).exists()] == []


def test_the_example_of_a_record_type_is_one(repository: Path) -> None:
    text = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    record_type = parse_record_type(
        json.loads(example), topic="__consumer_offsets", table="group_mood_swing", file="example"
    )
    assert [field.column for field in record_type.value.fields] == ["mood", "since"]


def test_the_pages_of_tables_are_what_the_schemas_say(repository: Path) -> None:
    docs = repository / "docs"
    rendered = runpy.run_path(str(docs / "render_tables.py"))["pages"]()
    written = {name: docs.joinpath(name).read_text(encoding="utf-8") for name in rendered}
    assert written == rendered, "run `make docs`"


def test_the_page_of_the_audit_lists_the_rules_as_they_are(repository: Path) -> None:
    docs = repository / "docs"
    written = (docs / "audit.md").read_text(encoding="utf-8")
    render = runpy.run_path(str(docs / "render_findings.py"))
    assert render["rendered"](written) == written, "run `make docs`"
    pages = {each.name: each.read_text(encoding="utf-8") for each in docs.glob("findings/*.md")}
    assert pages == render["pages"](), "run `make docs`"
    count = len(finding_rules())
    assert f"{count} rules" in (repository / "README.md").read_text(encoding="utf-8")


def test_the_page_of_gaps_is_what_the_schemas_say(repository: Path) -> None:
    docs = repository / "docs"
    rendered = runpy.run_path(str(docs / "render_gaps.py"))["page"]()
    assert (docs / "gaps.md").read_text("utf-8") == rendered, "run `make docs`"


def test_the_sample_settings_are_taken(repository: Path) -> None:
    given = read_settings((), str(repository / "examples" / "audit.yaml")).from_file
    assert {rule.name: rule for rule in configured_rules(given.findings)}[
        "offsets_expire_soon"
    ].severity == "critical"
    assert given.thresholds("lag") == {"stuck_minutes": 10}


def test_every_make_target_that_pages_name_exists(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {
        target
        for page in PAGES
        for target in re.findall(r"`make ([a-z-]+)", (repository / page).read_text("utf-8"))
    }
    assert named - targets == set()


def test_every_make_target_is_explained(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    phony = set(re.findall(r"^\.PHONY: ([a-z-]+)$", makefile, re.MULTILINE))
    explained = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert phony - explained == {"help"}


def test_decisions_are_numbered_without_gaps(repository: Path) -> None:
    pages = sorted(page.name for page in (repository / "docs" / "decisions").glob("*.md"))
    assert [page[:4] for page in pages] == [f"{n:04}" for n in range(1, len(pages) + 1)]
    for page in pages:
        heading = (repository / "docs" / "decisions" / page).read_text("utf-8").splitlines()[0]
        assert heading.startswith(f"# {page[:4]}: ")
