"""How much code there is, and how many files a question takes, is counted by plain rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import files_to_an_answer as walk
from benchmarks.code_size import code_lines, importers

CODE = '''"""A module's text
of two lines."""

# a comment
LIMIT = 3
"""A value's text."""


def text() -> str:
    """A function's text."""
    return """a string
    that is code"""  # of two lines
'''


def test_lines_of_code_are_neither_texts_nor_comments_nor_blank() -> None:
    assert code_lines(CODE) == 4


def test_files_that_import_a_module_are_counted(tmp_path: Path) -> None:
    files = [tmp_path / "one.py", tmp_path / "two.py"]
    files[0].write_text("from analytics.wire import cursor\n")
    files[1].write_text("import analytics.wire.cursor\n")
    known = importers(files)
    assert known["analytics.wire.cursor"] == 2
    assert known["analytics.wire"] == 1


@pytest.fixture
def _question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "analytics" / "questions"
    folder.mkdir(parents=True)
    (folder / "answer.py").write_text(
        "from analytics.questions import rows\n"
        "from analytics.questions.words import SAID, Kind\n"
        "from schemas import table\n"
        "def answer(kind: Kind):\n"
        "    return rows.made(SAID), table\n"
        "def other():\n"
        "    return Kind\n"
    )
    (folder / "rows.py").write_text(
        "from analytics.questions.sums import summed\n"
        "from analytics.questions.unread import nothing\n"
        "def made(word): return summed(word)\n"
        "def unused(): return nothing()\n"
    )
    (folder / "sums.py").write_text("def summed(word): return word\n")
    (folder / "words.py").write_text("SAID = 1\nclass Kind: pass\n")
    (folder / "unread.py").write_text("def nothing(): return None\n")
    monkeypatch.chdir(tmp_path)
    for each in (walk._path, walk._module):
        each.cache_clear()
    yield
    for each in (walk._path, walk._module):
        each.cache_clear()


@pytest.mark.usefixtures("_question")
def test_only_what_an_answer_names_is_opened() -> None:
    assert walk.files_to_an_answer("analytics.questions.answer", "answer") == [
        "analytics.questions.answer",
        "analytics.questions.rows",
        "analytics.questions.sums",
        "analytics.questions.words",
    ]


@pytest.mark.parametrize("question", walk.ANSWERED_BY)
def test_each_question_is_answered_by_a_function_that_is_there(question: str) -> None:
    files = walk.files_to_an_answer(*walk.ANSWERED_BY[question])
    assert len(files) > 5
