"""Writes the pages of the rules, and their table in `audit.md`, from the files of the rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from schemas.finding_rules import FindingRule, finding_rules, group_tools, tool_of

DOCS = Path(__file__).parent
PAGE = DOCS / "audit.md"
FOLDER = DOCS / "findings"
MARK = "<!-- rules: written by docs/render_findings.py -->\n"
_SHOWN_TYPE = "consumer"
_PLACEHOLDERS = {
    "input": "DUMP",
    "dump": "DUMP",
    "groups": "--group {group_id}...",
    "before": "TIME",
    "folder": "DIR",
    "tool": tool_of(_SHOWN_TYPE).name,
    "topic_option": tool_of(_SHOWN_TYPE).topic_option,
}
"""What the audit fills in: the dump, of `restore` the groups of a loss and the last instant before
it, and Kafka's tool by the group's type."""
_OPERATORS = {
    "is_not": "is not",
    "above": "is above",
    "below": "is below",
    "at_least": "is at least",
    "at_most": "is at most",
    "older_than": "is further back than",
    "within": "comes within",
}


def rules_in_words(rules: Iterable[FindingRule]) -> str:
    """Return a table for each subject."""
    parts = []
    ordered = sorted(rules, key=lambda each: (each.subject, each.name))
    for subject, mine in groupby(ordered, key=lambda each: each.subject):
        rows = [
            f"| [`{each.name}`](findings/{each.name}.md) | {each.severity} | {each.question} "
            f"| {_thresholds(each)} |"
            for each in mine
        ]
        head = ["| rule | severity | asks | thresholds |", "|---|---|---|---|"]
        parts.append("\n".join([f"### {subject.capitalize()}", "", *head, *rows]))
    return "\n\n".join(parts) + "\n"


def _thresholds(rule: FindingRule) -> str:
    return ", ".join(
        f"`{name}` {each.value:g} ({each.unit})" for name, each in rule.thresholds.items()
    )


def page_of(rule: FindingRule) -> str:
    """Return the page of a rule."""
    return "\n".join(_lines(rule))


def _lines(rule: FindingRule) -> Iterator[str]:
    yield f"# {rule.name}"
    yield ""
    yield f"**{rule.question}** Severity: {rule.severity}. Subject: {rule.subject}."
    yield ""
    yield rule.why
    yield ""
    yield "## When it fires"
    yield ""
    yield f"It reads the table `{rule.table}`. A row counts where all of this holds:"
    yield ""
    for each in rule.where:
        yield f"- {_condition(each)}"
    if not rule.where:
        yield "- (every row counts)"
    yield ""
    about = ", ".join(f"`{each}`" for each in rule.per)
    yield f"Rows with the same {about} make one finding, whose id stays from audit to audit."
    yield ""
    if rule.thresholds:
        yield "| threshold | default | unit | what it decides |"
        yield "|---|---|---|---|"
        for name, threshold in rule.thresholds.items():
            yield f"| `{name}` | {threshold.value:g} | {threshold.unit} | {threshold.about} |"
        yield ""
    yield "## What it says"
    yield ""
    yield f"> {_shown(rule.message)}"
    yield ""
    yield "To check or to mend:"
    yield ""
    yield "```sh"
    yield written_command(rule.suggestion)
    yield "```"
    yield ""
    yield from _other_tools(rule)
    yield "## Your own settings"
    yield ""
    yield "In the file of `--config`:"
    yield ""
    yield "```yaml"
    yield "findings:"
    own = {name: f"{each.value:g}" for name, each in rule.thresholds.items()}
    said = ", ".join(f"{name}: {value}" for name, value in own.items())
    yield f"  {rule.name}: {{severity: {rule.severity}{', ' if said else ''}{said}}}"
    yield "suppressions:"
    by = next((each for each in ("group_id", "topic") if each in rule.per), None)
    alone = f'{by}: "example-*", ' if by else ""
    yield (f"  - {{rule: {rule.name}, {alone}reason: known, owner: platform, until: 2030-01-31}}")
    yield "```"
    yield ""
    yield "[All rules](../audit.md#the-rules)"
    yield ""


def _other_tools(rule: FindingRule) -> Iterator[str]:
    """Yield which tools the audit names for groups of other types, if it names one by type."""
    if not rule.names_tool_of_group():
        return
    shown, said = tool_of(_SHOWN_TYPE), []
    for group_type, tool in group_tools().items():
        if tool.name != shown.name:
            option = tool.topic_option
            differs = "{topic_option}" in rule.suggestion and option != shown.topic_option
            more = f" with `{option}`" if differs else ""
            said.append(f"of a {group_type} group `{tool.name}`{more}")
    yield f"The audit names the tool by the group's type: {', '.join(said)}."
    yield ""


def written_command(suggestion: str) -> str:
    """Return a command with the placeholders that people know."""
    return suggestion.format_map(_Placeholders())


class _Placeholders(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return _PLACEHOLDERS.get(name, f"{{{name}}}")


def _shown(message: str) -> str:
    """Return a message with what is filled in set apart."""
    counted = re.sub(r"\{\w+:([^}]+)\}", lambda found: _of_many(found[1]), message)
    return re.sub(r"\{(\w+)\}", r"*\1*", counted)


def _of_many(noun: str) -> str:
    """Return what stands there of more than one: `lag:partition` and `lag:it is|they are` alike."""
    _, has_two_forms, many = noun.partition("|")
    return many.replace("#", "*N*") if has_two_forms else f"*N* {noun}s"


def _condition(condition: Mapping[str, Any]) -> str:
    ((operator, value),) = [each for each in condition.items() if each[0] != "column"]
    column = f"`{condition['column']}`"
    if operator == "is_null":
        return f"{column} is {'null' if value else 'not null'}"
    if operator in ("is", "is_not"):
        names = [f"`{json.dumps(each) if isinstance(each, bool) else each}`" for each in value]
        return f"{column} {_OPERATORS.get(operator, operator)} {' or '.join(names)}"
    if isinstance(value, Mapping):
        times = f" times {value['times']:g}" if "times" in value else ""
        return f"{column} {_OPERATORS[operator]} `{value['column']}`{times}"
    said = f"the threshold `{value}`" if isinstance(value, str) else f"{value:g}"
    return f"{column} {_OPERATORS[operator]} {said}"


def rendered(text: str) -> str:
    """Return the page of the audit with its tables written anew."""
    before, _, _ = text.partition(MARK)
    return f"{before}{MARK}\n{rules_in_words(finding_rules())}"


def pages() -> dict[str, str]:
    """Return the text of every rule's page, by file name."""
    return {f"{each.name}.md": page_of(each) for each in finding_rules()}


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text("utf-8")), "utf-8")
    FOLDER.mkdir(exist_ok=True)
    written = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, page in written.items():
        (FOLDER / name).write_text(page, "utf-8")
