"""The notebook of examples/ prints and draws what it shows, whenever it is run anew."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NAME = "three_questions.ipynb"
PNG = "image/png"


@pytest.fixture
def written(repository: Path) -> Any:
    return nbformat.read(repository / "examples" / NAME, as_version=4)


def outputs_of(notebook: Any) -> list[tuple[str, str, str | None]]:
    """Per cell of code what it printed and showed: text, and whether there is a picture."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            text = output.get("text") or data.get("text/plain", "")
            found.append((cell["source"], text, PNG if PNG in data else None))
    return found


def test_every_cell_ran_once_in_order_and_none_failed(written: Any) -> None:
    code = [each for each in written.cells if each["cell_type"] == "code"]
    assert [each["execution_count"] for each in code] == list(range(1, len(code) + 1))
    kinds = {output["output_type"] for each in code for output in each["outputs"]}
    assert kinds == {"execute_result", "stream"}


def test_it_shows_a_picture_for_each_question(written: Any) -> None:
    questions = [each for each in written.cells if each["source"].startswith("## Wh")]
    pictures = [
        base64.b64decode(output["data"][PNG])
        for each in written.cells
        for output in each.get("outputs", ())
        if PNG in output.get("data", {})
    ]
    assert len(pictures) == 3
    assert len(questions) == 4
    assert all(each.startswith(b"\x89PNG") for each in pictures)


def test_no_output_names_a_place_of_the_machine_that_ran_it(written: Any, repository: Path) -> None:
    text = nbformat.writes(written)
    assert str(repository) not in text
    assert not re.search(r"/(home|root|tmp|work|Users)/", text)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_run_anew_it_shows_the_same(
    written: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(repository))
    again = nbformat.read(repository / "examples" / NAME, as_version=4)
    for cell in again.cells:
        if cell["cell_type"] == "code":
            cell["outputs"] = []
    before = outputs_of(written)
    folder = {"metadata": {"path": str(repository / "examples")}}
    NotebookClient(again, timeout=600, kernel_name="python3", resources=folder).execute()
    assert outputs_of(again) == before
    assert before
