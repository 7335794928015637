"""The files speak of the project alone: no one's folders, and no host to fetch things from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.checkout import files_of

HERE = Path("tests/project/test_words.py")

FORBIDDEN = {
    "a folder of somebody's machine": re.compile(
        rb"(?<![\w.}~-])/(?:root|work|home/\w+|Users/\w+)/[\w.]"
    ),
    "a package registry": re.compile(
        rb"pypi\.org|pythonhosted\.org|npmjs\.org|repo1?\.maven\.|maven\.org|--index-url|find-links"
    ),
    "an unfinished merge": re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str, repository: Path) -> None:
    found = [
        f"{path}: {match[0].decode(errors='replace')}"
        for path in files_of(repository)
        if path != HERE and (match := FORBIDDEN[what].search((repository / path).read_bytes()))
    ]
    assert found == []


def test_no_file_is_larger_than_a_megabyte(repository: Path) -> None:
    large = [p for p in files_of(repository) if (repository / p).stat().st_size > 1 << 20]
    assert large == []


def test_names_say_what_is_in_a_module(repository: Path) -> None:
    """A module named for nothing collects everything."""
    homeless = {"utils", "util", "misc", "helpers", "common", "tools"}
    found = [p for p in files_of(repository) if p.suffix == ".py" and p.stem in homeless]
    assert found == []


def lines_of(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


@pytest.mark.parametrize(("tests", "most"), [(False, 500), (True, 500)])
def test_modules_stay_short(repository: Path, tests: bool, most: int) -> None:
    modules = [path for path in files_of(repository) if path.suffix == ".py"]
    chosen = [path for path in modules if (path.parts[0] == "tests") is tests]
    assert [str(path) for path in chosen if lines_of(repository / path) > most] == []
