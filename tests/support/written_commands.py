"""Commands that the project writes down for people: in pages, help, rules, messages, examples.

A command is taken as it stands, continued lines joined and comments left out. What it means on a
bundled dump, `tests/cases/commands/` says.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from docs.render_findings import written_command
from jobs.cli.main import COMMANDS, EPILOG, cli
from schemas.finding_rules import finding_rules
from schemas.gaps import gap_kinds
from tests.support.checkout import files_of
from tests.support.page_text import without_spans

_STARTS: Final = ("groupscope ", "python", "spark-submit", "kafka-")
_FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE_SPAN: Final = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_SHELL: Final = ("", "sh", "bash")
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
_LONE_OPTION: Final = re.compile(
    r"-{1,2}[a-z-]+(/--[a-z-]+)?( [A-Z]+| topic| group|[ =]\{[^}]*\})?"
)
_COMMAND: Final = re.compile(rf"\bgroupscope (?:{'|'.join(COMMANDS)})\b")
_MAY_NAME_A_COMMAND: Final = re.compile(r"--[a-z]|groupscope ")
"""A source without it names none, and need not be parsed."""
_EXAMPLES: Final = "Examples:"
_VALUE: Final = re.compile(r"^[A-Z@{[]|\.\w+$|^\d")
_NOT_FOR_COMMANDS: Final = ("docs/tables.md", "docs/replayed-tables.md", "CHANGELOG.md")
"""Pages of columns and their texts, and of what was."""


class Written(NamedTuple):
    """A command, and where it stands."""

    place: str
    command: str


class Message(NamedTuple):
    """A text of the program that names an option or a command; what is filled in is in braces."""

    place: str
    text: str


def all_commands(root: Path) -> dict[str, str]:
    """Return every command that is written down, with the first place where it stands."""
    found: dict[str, str] = {}
    written = chain(of_pages(root), of_help(), of_rules(), of_examples(root))
    for place, command in written:
        found.setdefault(command, place)
    return found


def of_pages(root: Path) -> Iterator[Written]:
    """Yield the commands of pages, but for those of tests: of blocks, and of code in sentences."""
    for page in files_of(root):
        if page.suffix != ".md" or page.parts[0] == "tests" or str(page) in _NOT_FOR_COMMANDS:
            continue
        text = (root / page).read_text("utf-8")
        for language, block in _FENCED.findall(text):
            if language in _SHELL:
                yield from _commands_of(str(page), block)
        for span in _CODE_SPAN.findall(_FENCED.sub("", text)):
            command = _command_of_span(" ".join(span.split()))
            if command:
                yield Written(str(page), command)


def of_help() -> Iterator[Written]:
    """Yield the examples that helps end with."""
    context = click.Context(cli, info_name="groupscope")
    epilogs = {"": EPILOG}
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        epilogs[name] = command.epilog or ""
    for name, text in epilogs.items():
        place = f"groupscope {name} --help".replace("  ", " ")
        yield from _commands_of(place, text.partition(_EXAMPLES)[2])


def of_rules() -> Iterator[Written]:
    """Yield what rules advise, with the placeholders of their pages."""
    for rule in finding_rules():
        for each in rule.commands():
            yield Written(f"rule {rule.name}", written_command(each))


def of_examples(root: Path) -> Iterator[Written]:
    """Yield the commands of the files that are bundled to be read and started."""
    for path in files_of(root):
        if path.parts[0] != "examples" or path.suffix not in (".py", ".sh", ".yaml"):
            continue
        text = (root / path).read_text("utf-8")
        if path.suffix == ".sh":
            # What the script shows is what it runs.
            text = "\n".join(re.findall(r"^say (.*)", text, re.MULTILINE))
        spans = _CODE_SPAN.findall(text)
        lines = [line.strip().removeprefix("# ") for line in text.splitlines()]
        after_colon = [line.partition(": ")[2] for line in lines if ": groupscope " in line]
        yield from _commands_of(str(path), "\n".join([*spans, *lines, *after_colon]))


def of_page(page: str, form: str) -> list[str]:
    """Return the commands of groupscope on a page of an audit or an incident.

    Args:
        page: As it was written.
        form: `html`, `text`, `markdown` or `json`.
    """
    if form == "html":
        page = html.unescape(re.sub(r"<[^>]+>", "\n", without_spans(page)))
    if form == "json":
        page = "\n".join(_strings_of(json.loads(page)))
    commands = [each.command for each in _commands_of(form, page.replace("`", "\n"))]
    parts = [part for each in commands for part in each.split("; groupscope ")]
    named = [each if each.startswith("groupscope ") else f"groupscope {each}" for each in parts]
    kafka = [each.startswith("kafka-") for each in parts]
    return sorted({each for each, of_kafka in zip(named, kafka, strict=True) if not of_kafka})


def _strings_of(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict | list):
        for each in document.values() if isinstance(document, dict) else document:
            yield from _strings_of(each)


def messages(root: Path) -> Iterator[Message]:
    """Yield the texts of the program that name an option or a command; not its help."""
    for folder in ("analytics", "jobs", "reports"):
        for path in sorted((root / folder).rglob("*.py")):
            source = path.read_text("utf-8")
            if not _MAY_NAME_A_COMMAND.search(source):
                continue
            tree = ast.parse(source)
            helps = set(_texts_of_options(tree))
            for text in _texts_of(tree):
                if not _names_a_command(text) or text in helps or _EXAMPLES in text:
                    continue
                yield Message(str(path.relative_to(root)), " ".join(text.split()))
    for kind in gap_kinds().values():
        for text in (kind.template.text, kind.advice):
            if _names_a_command(text):
                yield Message(f"schemas/gaps: {kind.code}", text)


def _names_a_command(text: str) -> bool:
    if not (_OPTION.search(text) or _COMMAND.search(text)):
        return False
    return not _LONE_OPTION.fullmatch(text.strip())


def _texts_of(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module but for its docstrings, each as a whole."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
        if id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            parts |= {id(each) for each in ast.walk(node)}
            yield "".join(map(_part, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _texts_of_options(tree: ast.AST) -> Iterator[str]:
    """Yield what `help=` of an option is; tests/project reads those."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("help", "show_default"):
            yield from _texts_of(node.value)


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


def _commands_of(place: str, block: str) -> Iterator[Written]:
    joined = re.sub(r"\\\n\s*", "", block)
    for line in joined.splitlines():
        command = _without_prompt(line.strip())
        if command.startswith(_STARTS) and len(command.split()) > 1:
            yield Written(place, command)


def _without_prompt(line: str) -> str:
    return re.sub(r"^(\$ )?(\.venv/bin/)?", "", line)


def _command_of_span(span: str) -> str | None:
    """Return a command that stands in a sentence; None where the code is another thing."""
    command = _without_prompt(span)
    first, _, rest = command.partition(" ")
    if first in ("groupscope", "python", "spark-submit") and rest:
        return command
    if first in COMMANDS and rest and all(map(_is_argument, rest.split()[:1])):
        return f"groupscope {command}"
    return None


def _is_argument(word: str) -> bool:
    return word.startswith("--") or bool(_VALUE.search(word))
