"""A wheel holds one package: the build step that moves the others below it.

In a checkout `analytics`, `jobs`, `reports` and `schemas` lie beside `groupscope`. Other
distributions use such names, too, and pip lays one over the other without a word; so in a wheel
they are `groupscope.analytics` and so on (docs/decisions/0020). What is installed in place stays as
it is.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final

from setuptools.command.build_py import build_py

PARENT: Final = "groupscope"
_MODULE: Final = re.compile(r"[a-z_]+\.[a-z0-9_.]*")
"""The dotted name of a module, or the beginning of one."""


class ImportNotMovedError(Exception):
    """A module names another one in a way that would still lead to a top-level package."""


class BuildOnePackage(build_py):  # type: ignore[misc]  # has no types
    """Copies packages as setuptools does, then moves all others below the one."""

    def run(self) -> None:
        """Build; in place (`pip install -e`) nothing moves."""
        super().run()
        if not self.editable_mode:
            packages = {each.partition(".")[0] for each in self.distribution.packages or ()}
            move_below(Path(self.build_lib), packages - {PARENT})


def move_below(folder: Path, packages: Collection[str]) -> None:
    """Move packages of a folder below `groupscope`, and have imports lead there.

    Args:
        folder: Has them all, `groupscope` too. What an earlier build moved is replaced.
        packages: The names of the others.

    Raises:
        ImportNotMovedError: See `imports_below`; names file and line.
    """
    for package in packages:
        target = folder / PARENT / package
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(folder / package, target)
    for path in sorted((folder / PARENT).rglob("*.py")):
        try:
            moved = imports_below(path.read_text("utf-8"), packages)
        except ImportNotMovedError as error:
            raise ImportNotMovedError(f"{path.relative_to(folder)}: {error}") from None
        path.write_text(moved, "utf-8")


def imports_below(source: str, packages: Collection[str]) -> str:
    """Return a module whose imports from packages are from `groupscope.PACKAGE`.

    Lines stay where they are, and nothing else changes.

    Raises:
        ImportNotMovedError: It has `import PACKAGE`, which binds the package's bare name, or the
            name of a module in a text: at run time both would lead to a top-level package.
    """
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(level=0, module=str(module)) if _root(module) in packages:
                number, column = node.lineno - 1, node.col_offset
                if not lines[number].startswith(f"from {module}", column):
                    raise ImportNotMovedError(
                        f"line {node.lineno}: more than one blank or statement"
                    )
                # In front of a statement there are blanks only, so bytes and characters agree.
                place = column + len("from ")
                lines[number] = f"{lines[number][:place]}{PARENT}.{lines[number][place:]}"
            case ast.Import(names=names) if {_root(each.name) for each in names} & {*packages}:
                statement = ast.unparse(node)
                raise ImportNotMovedError(
                    f"line {node.lineno}: `{statement}`: write `from ... import ...`"
                )
            case ast.Constant(value=str(text)) if (
                _MODULE.fullmatch(text) and _root(text) in packages
            ):
                raise ImportNotMovedError(
                    f"line {node.lineno}: {text!r} names a module: begin with `__package__`"
                )
            case _:
                pass
    return "\n".join(lines)


def _root(module: str) -> str:
    return module.partition(".")[0]
