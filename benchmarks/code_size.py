"""How much code there is: files, and lines that are neither blank, nor comment, nor docstring.

    python -m benchmarks.code_size [FOLDER ...]

Of each folder, and of all, the Python files, the lines of code in them, and how many of the files
are imported by one other file only. An empty `__init__.py` counts as a file. A line counts where a
token of code begins, goes on or ends on it; a string that is a docstring by Python's own rule (the
first statement of a module, class or function) and one that documents an attribute (a string as a
statement of its own) are no code.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

FOLDERS: Final = ("analytics", "jobs", "reports", "schemas")
_NO_CODE: Final = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    }
)


def code_lines(source: str) -> int:
    """Return how many lines of a module hold code."""
    texts = {
        (each.lineno, each.col_offset)
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    documented = {
        (each.value.lineno, each.value.col_offset)
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
    } & texts
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _NO_CODE or token.start in documented:
            continue
        lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def python_files(folders: Iterable[str]) -> Iterator[Path]:
    """Yield the modules below folders, in order of their paths."""
    for folder in folders:
        yield from sorted(Path(folder).rglob("*.py"))


def imported_modules(path: Path) -> set[str]:
    """Return the modules that a file imports, by their dotted names.

    `from a.b import c` is `a.b` and `a.b.c`: which of the two is a module shows where they are
    looked up.
    """
    found: set[str] = set()
    for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(each, ast.Import):
            found |= {name.name for name in each.names}
        elif isinstance(each, ast.ImportFrom) and each.module:
            found |= {each.module, *(f"{each.module}.{name.name}" for name in each.names)}
    return found


def module_of(path: Path) -> str:
    """Return the dotted name of a file; a package's is that of its folder."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def importers(paths: Iterable[Path]) -> Counter[str]:
    """Return by module how many of the files import it."""
    return Counter(name for path in paths for name in imported_modules(path))


def main(folders: list[str]) -> None:
    """Print a line a folder, and one of all."""
    every = list(python_files(FOLDERS))
    known = importers(every)
    print(f"{'folder':<12}{'files':>8}{'with one importer':>20}{'lines of code':>16}")
    sums = [0, 0, 0]
    for folder in folders or FOLDERS:
        files = list(python_files([folder]))
        lines = sum(code_lines(each.read_text(encoding="utf-8")) for each in files)
        single = sum(known[module_of(each)] == 1 for each in files if each.name != "__init__.py")
        sums = [a + b for a, b in zip(sums, (len(files), single, lines), strict=True)]
        print(f"{folder:<12}{len(files):>8,}{single:>20,}{lines:>16,}")
    print(f"{'all':<12}{sums[0]:>8,}{sums[1]:>20,}{sums[2]:>16,}")


if __name__ == "__main__":
    main(sys.argv[1:])
