"""How many files a reader opens on the way from a question's inputs to its tables.

    python -m benchmarks.files_to_an_answer [QUESTION ...]

The rule. One begins at the function that answers the question and reads its body. Every name in it
that is a function, a class or a value of our own is looked up where it is defined, in that file its
definition alone is read (of a class all of it), and so on until nothing new is named. Types in
annotations are not followed, nor what is imported for them alone. Each file of which anything is
read counts once; the count has the file one begins in.

A question's inputs are rows, and what the manifest says: whatever stores, reads, cuts and spreads
them is a door, which is not opened (`DOORS`). What cannot be told is part of an answer, so
`analytics.gaps` is opened. The second number opens the doors right below questions, too: how rows
of a replayed workspace are read, and how parts are run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

STORED: Final = (
    *("schemas", "analytics.tables", "analytics.workspace", "analytics.errors", "analytics.wire"),
    *("analytics.replay", "analytics.decode", "analytics.dump", "analytics.assignors"),
)
DOORS: Final = (
    *STORED,
    *("analytics.engine", "analytics.replayed", "analytics.contracts"),
    *("analytics.epoch_times", "analytics.side_files"),
)
ROOTS: Final = ("analytics", "jobs", "reports", "schemas")
ANSWERED_BY: Final = {
    name: (f"analytics.questions.{name}.question", name)
    for name in ("expiration", "balance", "rebalances", "lag", "share", "usage", "timeline")
}
"""The questions that are counted, and the function that answers each."""


@dataclass
class Module:
    """A file as a reader sees it.

    Attributes:
        defined: Top-level definitions by name.
        imported: By the name it has here, the module and the name there; None is the module.
    """

    defined: dict[str, ast.AST] = field(default_factory=dict)
    imported: dict[str, tuple[str, str | None]] = field(default_factory=dict)


def files_to_an_answer(module: str, function: str, doors: tuple[str, ...] = DOORS) -> list[str]:
    """Return the modules that are opened, sorted."""
    read: set[tuple[str, str]] = set()
    todo = [(module, function)]
    while todo:
        here = todo.pop()
        if here in read:
            continue
        read.add(here)
        todo += [each for each in _named_in(*here, doors) if each not in read]
    return sorted({each for each, _ in read})


def _named_in(name: str, definition: str, doors: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    module = _module(name)
    node = module.defined.get(definition)
    if node is None:
        # A package hands on what a module of it defines.
        if (there := _resolved(module.imported.get(definition), doors)) is not None:
            yield there
        return
    imported = {**module.imported, **_imports(node)}
    for used, attribute in _names(node):
        if used in module.defined:
            yield name, used
            continue
        target = imported.get(used)
        if target is not None and target[1] is None and attribute is not None:
            target = (target[0], attribute)
        if (there := _resolved(target, doors)) is not None:
            yield there


def _resolved(
    target: tuple[str, str | None] | None, doors: tuple[str, ...]
) -> tuple[str, str] | None:
    """Return the definition that is meant; None where it is not ours, or behind a door."""
    name, wanted = target or ("", None)
    if wanted is None:
        return None
    if name.partition(".")[0] not in ROOTS or _path(name) is None:
        return None
    if any(name == door or name.startswith(f"{door}.") for door in doors):
        return None
    return name, wanted


def _names(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield names that code uses, each with the attribute that is taken of it."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield node.value.id, node.attr
        return
    if isinstance(node, ast.Name):
        yield node.id, None
        return
    for name, each in ast.iter_fields(node):
        if name in {"annotation", "returns"}:
            continue
        for one in each if isinstance(each, list) else [each]:
            if isinstance(one, ast.AST):
                yield from _names(one)


@cache
def _module(name: str) -> Module:
    path = _path(name)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = Module(imported=_imports(tree))
    for node in tree.body:
        for defined in _definitions(node):
            module.defined[defined] = node
    return module


def _definitions(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (each.id for each in node.targets if isinstance(each, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _imports(tree: ast.AST) -> dict[str, tuple[str, str | None]]:
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.asname or each.name: (each.name, None) for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                is_module = _path(f"{node.module}.{each.name}") is not None
                target = (f"{node.module}.{each.name}", None) if is_module else None
                found[each.asname or each.name] = target or (node.module, each.name)
    return found


@cache
def _path(name: str) -> Path | None:
    if name.partition(".")[0] not in ROOTS:
        return None
    path = Path(*name.split("."))
    for each in (path.with_suffix(".py"), path / "__init__.py"):
        if each.is_file():
            return each
    return None


def main(questions: list[str]) -> None:
    """Print how many files are opened, a line a question; of one question alone, which."""
    for question in questions or ANSWERED_BY:
        files = files_to_an_answer(*ANSWERED_BY[question])
        with_readers = files_to_an_answer(*ANSWERED_BY[question], STORED)
        print(f"{question:<12}{len(files):>4} files, {len(with_readers)} with readers")
        if len(questions) == 1:
            print("\n".join(f"  {each}" for each in files))


if __name__ == "__main__":
    main(sys.argv[1:])
