"""Definitions are named for what they are: words that name nothing are in `words.json`."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from analytics.version import PACKAGES
from tests.support.checkout import files_of

DATA = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
WORDS: dict[str, str] = DATA["words"]
EXCEPTIONS: list[str] = DATA["exceptions"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """A name that a module defines.

    Attributes:
        kind: function, class, attribute, constant or parameter.
        scope: The classes and functions around it, with dots.
        name: As it is written.
        line: Where.
    """

    kind: str
    scope: str
    name: str
    line: int

    @property
    def word(self) -> str:
        """The name as `words.json` has it, whether private, public or a constant."""
        return self.name.strip("_").lower()

    @property
    def place(self) -> str:
        """What identifies it in a file, also when lines move."""
        return f"{self.kind} {self.name}" + (f" of {self.scope}" if self.scope else "")


def definitions(node: ast.AST, scope: str = "") -> Iterator[Definition]:
    """Yield what is defined below a node, at any depth; variables of functions are not."""
    for each in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(each, ast.ClassDef | Function):
            kind = "class" if isinstance(each, ast.ClassDef) else "function"
            yield Definition(kind, scope, each.name, each.lineno)
            inner = f"{scope}.{each.name}".lstrip(".")
        elif isinstance(node, ast.ClassDef | ast.Module):
            kind = "attribute" if isinstance(node, ast.ClassDef) else "constant"
            for target in _assigned(each):
                yield Definition(kind, scope, target.id, target.lineno)
        if isinstance(each, Function):
            for parameter in _parameters(each.args):
                yield Definition("parameter", inner, parameter.arg, parameter.lineno)
        yield from definitions(each, inner)


def _assigned(statement: ast.AST) -> Iterator[ast.Name]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    for target in targets:
        yield from (each for each in ast.walk(target) if isinstance(each, ast.Name))


def _parameters(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (each for each in (arguments.vararg, arguments.kwarg) if each is not None)


def nameless(path: Path, repository: Path) -> Iterator[tuple[str, str]]:
    """Yield the place of each definition of a file whose name is such a word, and a message."""
    module = ast.parse((repository / path).read_text(encoding="utf-8"))
    for each in definitions(module):
        if each.word in WORDS:
            place = f"{path.as_posix()}: {each.place}"
            yield place, f"{path}:{each.line}: {each.place}: {WORDS[each.word]}"


def test_definitions_say_what_they_are(repository: Path) -> None:
    modules = [p for p in files_of(repository) if p.suffix == ".py" and p.parts[0] in PACKAGES]
    places = [each for path in modules for each in nameless(path, repository)]
    assert [message for place, message in places if place not in EXCEPTIONS] == []


def test_exceptions_only_become_fewer(repository: Path) -> None:
    """What has been renamed leaves the list, so that nothing takes the name again."""
    files = dict.fromkeys(Path(each.partition(": ")[0]) for each in EXCEPTIONS)
    there = [
        place
        for path in files
        if (repository / path).exists()
        for place, _ in nameless(path, repository)
    ]
    assert [each for each in EXCEPTIONS if each not in there] == []
    assert sorted(set(EXCEPTIONS)) == EXCEPTIONS


def test_every_word_has_a_reason() -> None:
    assert {word for word, reason in WORDS.items() if len(reason.split()) < 3} == set()
    assert {word for word in WORDS if word != word.strip("_").lower()} == set()


EXAMPLE = '''
"""Said in a text, told in another."""
SAID: int = 0
A, TOLD = 1, 2
class Found:
    wanted: int
    kept = 0
    def _told(self, /, said, *given, known=0, **asked):
        taken = told = said
        return lambda made: [shown for shown in made]
def outer():
    def turns(_found_): ...
'''


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("constant SAID", 3),
        ("constant TOLD", 4),
        ("class Found", 5),
        ("attribute wanted of Found", 6),
        ("attribute kept of Found", 7),
        ("function _told of Found", 8),
        ("parameter said of Found._told", 8),
        ("parameter given of Found._told", 8),
        ("parameter known of Found._told", 8),
        ("parameter asked of Found._told", 8),
        ("function turns of outer", 12),
        ("parameter _found_ of outer.turns", 12),
    ],
)
def test_every_kind_of_definition_is_looked_at(place: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(EXAMPLE, encoding="utf-8")
    named = dict(nameless(Path("example.py"), tmp_path))
    assert named[f"example.py: {place}"].startswith(f"example.py:{line}: {place}: ")


def test_variables_and_texts_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(EXAMPLE, encoding="utf-8")
    assert len(list(nameless(Path("example.py"), tmp_path))) == 12
