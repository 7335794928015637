"""Runs the commands of every page's console blocks, and writes what they print now.

    python docs/render_guides.py [PAGE...]

A block of the language `console` is what a terminal of 120 columns shows: lines that begin with
`$ ` are commands, what follows is what they print, on stdout and stderr. The commands of a page run
one after the other in one empty folder, beside `examples`. `...` on a line of its own stands for
lines that the page leaves out: the lines before the first one are the first that are printed, those
behind the last one the last. `$ echo $?` shows an exit code, and has to wherever it is not 0.

A test fails while a page shows anything else than its commands print.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
LEFT_OUT: Final = "..."
EXIT_CODE: Final = "echo $?"
PROGRAMS: Final = ("groupscope", "cat", "ls")
"""What a command of a block may start, beside `echo $?`."""
_BLOCK: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Ended(NamedTuple):
    """How a command ended, and what it printed on stdout and stderr, in order."""

    code: int
    printed: str


Run = Callable[[str, Path], Ended]
"""Runs a command in a folder."""


@dataclass(frozen=True)
class Step:
    """A command of a block, and the lines that the page shows below it.

    Attributes:
        command: As it is written, with its continued lines.
        shown: Without empty lines at the end.
    """

    command: str
    shown: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command on one line."""
        return re.sub(r"\\\n\s*", "", self.command)


class UnfitBlockError(Exception):
    """A block that cannot be run as it is written."""


def pages_with_blocks(paths: Sequence[Path]) -> list[Path]:
    """Return those of some pages that have console blocks."""
    return [each for each in paths if _BLOCK.search(each.read_text("utf-8"))]


def steps_of(page: str) -> list[Step]:
    """Return the commands of a page's console blocks, in order."""
    return [step for block in _BLOCK.findall(page) for step in _steps_of_block(block)]


def rendered(page: str, folder: Path, run: Run) -> str:
    """Return a page whose console blocks show what its commands print now.

    Args:
        page: The text of the page.
        folder: An empty one, for the commands to run in.
        run: How to run a command.

    Raises:
        UnfitBlockError: A block does not begin with a command, or has one that is not to be run.
    """
    (folder / "examples").symlink_to(ROOT / "examples", target_is_directory=True)

    def of_block(block: re.Match[str]) -> str:
        return f"```console\n{_text_of(_run_again(_steps_of_block(block[1]), folder, run))}```"

    return _BLOCK.sub(of_block, page)


def shortened(printed: Sequence[str], shown: Sequence[str]) -> list[str]:
    """Return lines that were printed, with as much left out as a page leaves out.

    What stands between two lines `...` is looked for in what was printed: as it is, else by the
    line most like its first one. Where the page shows what was printed, it comes back as it is.
    """
    parts = _parts(shown)
    if len(parts) == 1:
        return list(printed)
    head, *middle, tail = parts
    first, last = len(head), max(len(head), len(printed) - len(tail))
    kept = [range(first)]
    for part in middle:
        start = _place_of(part, printed[kept[-1].stop : last])
        if start is not None:
            start += kept[-1].stop
            kept.append(range(start, min(start + len(part), last)))
    kept.append(range(last, len(printed)))
    return list(_with_gaps(printed, kept))


def _parts(shown: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def _place_of(part: Sequence[str], printed: Sequence[str]) -> int | None:
    """Return where lines begin in what was printed; None where nothing is like them."""
    exact = range(len(printed) - len(part) + 1)
    for start in exact:
        if list(printed[start : start + len(part)]) == list(part):
            return start
    like = difflib.get_close_matches(part[0], printed, n=1) if part else []
    return list(printed).index(like[0]) if like else None


def _with_gaps(printed: Sequence[str], kept: Sequence[range]) -> Iterator[str]:
    end = 0
    for each in kept:
        if each.start > end:
            yield LEFT_OUT
        yield from printed[each.start : each.stop]
        end = max(end, each.stop)


def _steps_of_block(block: str) -> list[Step]:
    if not block.startswith("$ "):
        raise UnfitBlockError(f"a console block begins with `$ `: {block.splitlines()[0]}")
    steps = []
    for text in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*", text)
        assert command is not None
        shown = text[command.end() :].strip("\n")
        steps.append(Step(command[0], tuple(shown.split("\n")) if shown else ()))
    return steps


def _run_again(steps: Sequence[Step], folder: Path, run: Run) -> list[Step]:
    """Return steps with what they print now; an exit code that is not 0 is shown."""
    done: list[Step] = []
    for at, step in enumerate(steps):
        if step.command == EXIT_CODE:
            continue
        if step.line.split()[0] not in PROGRAMS:
            raise UnfitBlockError(f"only {', '.join(PROGRAMS)} can be run: {step.line}")
        ended = run(step.line, folder)
        printed = [line.rstrip() for line in ended.printed.strip("\n").split("\n")]
        printed = printed if any(printed) else []
        done.append(replace(step, shown=tuple(shortened(printed, step.shown))))
        asks = at + 1 < len(steps) and steps[at + 1].command == EXIT_CODE
        if ended.code or asks:
            done.append(Step(EXIT_CODE, (str(ended.code),)))
    return done


def _text_of(steps: Sequence[Step]) -> str:
    lines: list[str] = []
    for step in steps:
        if lines and not lines[-1].startswith("$ ") and step.command != EXIT_CODE:
            lines.append("")
        lines += [f"$ {step.command}", *step.shown]
    return "".join(f"{line}\n" for line in lines)


def _run_installed(command: str, folder: Path) -> Ended:
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    process = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return Ended(process.returncode, process.stdout)


if __name__ == "__main__":
    named = [Path(each) for each in sys.argv[1:]] or sorted(ROOT.glob("docs/**/*.md"))
    for path in pages_with_blocks(named):
        before = path.read_text("utf-8")
        with tempfile.TemporaryDirectory() as temporary:
            after = rendered(before, Path(temporary), _run_installed)
        print(f"{path}: {'as it was' if after == before else 'written anew'}")
        path.write_text(after, "utf-8")
