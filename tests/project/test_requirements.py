"""What executors are to install is what they need, in the versions of this side."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from analytics.cluster_probe import NEEDED, SAME
from analytics.snapshot.cluster_connection import CLIENT_LIBRARY
from analytics.snapshot.reading_tasks import PACKAGES
from analytics.version import PACKAGES as OWN_PACKAGES
from tests.support.checkout import files_of
from tests.support.worker_environments import pins_of

OF_DRIVER = {"cryptography", "jinja2", "kafka-python"}
"""Data Docs are drawn, and stores of certificates read, in the driver; snapshots have a list."""
OF_SPARK = {"pyspark", "py4j"}
"""Spark brings them itself, to executors and to drivers that it starts."""
TEST_TOOLS = {"pytest", "mypy", "ruff", "hypothesis", "moto", "import-linter", "setuptools"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def worker(repository: Path) -> dict[str, str]:
    return pins_of(repository / "requirements" / "worker.txt")


def test_versions_are_those_that_were_tested(worker: dict[str, str], repository: Path) -> None:
    tested = pins_of(repository / "requirements" / "setup.txt")
    assert worker.items() <= tested.items()
    assert set(worker) & (TEST_TOOLS | OF_SPARK) == set()
    assert set(tested) >= TEST_TOOLS


def test_what_tasks_of_a_snapshot_need_besides_is_a_list_of_its_own(
    worker: dict[str, str], repository: Path
) -> None:
    further = pins_of(repository / PACKAGES)
    assert set(further) == {CLIENT_LIBRARY}
    assert further.items() <= pins_of(repository / "requirements" / "setup.txt").items()
    assert set(further) & set(worker) == set()


def test_all_that_the_program_asks_for_is_in_it(worker: dict[str, str], repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    direct = {re.split(r"[^\w.-]", each)[0] for each in project["dependencies"]}
    assert direct - OF_SPARK <= set(worker)


@pytest.mark.parametrize("name", ["requirements/worker.txt", PACKAGES])
def test_every_file_has_its_hash_and_none_its_host(repository: Path, name: str) -> None:
    text = (repository / name).read_text("utf-8")
    pinned = re.findall(r"^[\w.-]+==(?:.*\\\n)*.*", text, re.MULTILINE)
    assert pinned
    assert [each for each in pinned if "--hash=sha256:" not in each] == []
    assert "://" not in text


def test_the_look_at_executors_asks_for_what_is_imported_there(repository: Path) -> None:
    """Tasks run what lies in `analytics` and `schemas`."""
    distributions = packages_distributions()
    imported = {
        normal(distributions[top][0])
        for path in files_of(repository)
        if path.suffix == ".py" and path.parts[0] in {"analytics", "schemas"}
        for top in imports_of(ast.parse((repository / path).read_text("utf-8")))
        if top not in sys.stdlib_module_names and top not in OWN_PACKAGES
    }
    assert imported - OF_SPARK - OF_DRIVER == {*SAME, *NEEDED}


def imports_of(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names
