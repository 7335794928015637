"""Files that a person gives: settings of brokers, thresholds, names for topic ids.

Settings are a `server.properties` as it is, and YAML with Kafka's keys.

A file for `--config` to start from: every rule with its severity and thresholds.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Any, NamedTuple

import click

from analytics.errors import InputNotRecognizedError
from analytics.replayed.given_settings import BrokerSettings, GivenSettings, Settings
from analytics.side_files import (
    MOST_INT,
    bad,
    json_rows,
    plain_text,
    read_bytes,
    read_text,
    whole_number,
)
from jobs.cli.options.shared import in_order
from schemas.evaluation_rules import QUESTIONS, Threshold, checked, thresholds
from schemas.finding_rules import FindingRule
from schemas.names import BROKER, GROUP, is_setting, nearest_name, nearest_setting
from schemas.reading import SchemaError

# `--topic-ids FILE`: names for topic ids that the dump cannot name.

_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_LOOKED_FOR = "a CSV with the header topic_id,topic[,partitions], or JSON objects with these keys"

topic_ids_option = click.option(
    "--topic-ids",
    metavar="FILE",
    help="Names for topic ids that the dump cannot name, as CSV or JSON: topic_id, topic and, if "
    "known, partitions.",
)
"""`--topic-ids` as `topic_ids: str | None`."""


class NamedTopic(NamedTuple):
    """A topic as a side file names it; the order is that of the table `topics`."""

    topic: str
    topic_id: str
    partitions: int | None


def read_topic_ids(path: str) -> list[NamedTopic]:
    """Read a side file, sorted and each line once.

    Raises:
        InputNotRecognizedError: It is neither of the two forms, or says something else of a topic.
        InputUnreadableError: It cannot be read.
    """
    text = read_text(path)
    is_json = text.lstrip()[:1] in ("[", "{")
    rows = json_rows(text, path) if is_json else _csv_rows(text, path)
    named = {_named(row, f"{path}, row {number}") for number, row in enumerate(rows, 1)}
    return sorted(named, key=lambda each: (each[:2], each[2] or 0))


def _csv_rows(text: str, path: str) -> list[Mapping[str, Any]]:
    try:
        return list(csv.DictReader(text.splitlines(), skipinitialspace=True))
    except csv.Error as error:
        raise InputNotRecognizedError(f"{path}: {error}; looked for {_LOOKED_FOR}") from error


def _named(row: Any, where: str) -> NamedTopic:  # noqa: ANN401 - as the file has it
    if not isinstance(row, Mapping):
        raise bad(where, "the row", row, _LOOKED_FOR)
    if missing := [name for name in ("topic_id", "topic") if row.get(name) in (None, "")]:
        raise InputNotRecognizedError(
            f"{where}: there is no {missing[0]}; looked for {_LOOKED_FOR}"
        )
    topic_id = row["topic_id"]
    if not (isinstance(topic_id, str) and _ID.fullmatch(topic_id)):
        raise bad(where, "topic_id", topic_id, "a topic id, which has 22 characters")
    partitions = row.get("partitions")
    if partitions not in (None, ""):
        partitions = whole_number(partitions, "partitions", where, least=1, most=MOST_INT)
    topic = plain_text(row["topic"], "topic", where)
    return NamedTopic(topic, topic_id, partitions or None)


settings_options = in_order(
    click.option(
        "--broker-config",
        "broker_configs",
        metavar="FILE",
        multiple=True,
        help="A broker's server.properties; repeatable, one a broker.",
    ),
    click.option(
        "--config",
        metavar="FILE",
        help="YAML with Kafka's own settings, `groups:` that override them, and thresholds under "
        "`rules:`; `audit --print-config` prints one to start from.",
    ),
)
"""`--broker-config` as `broker_configs: tuple[str, ...]`, `--config` as `config: str | None`."""

_NODE = ("node.id", "broker.id")
_GROUPS, _RULES = "groups", "rules"
_FINDINGS, _SUPPRESSIONS = "findings", "suppressions"


def read_settings(broker_configs: Iterable[str], config: str | None) -> Settings:
    """Read the files of `--broker-config` and of `--config`.

    Raises:
        InputNotRecognizedError: One sets nothing that Kafka or we know.
        InputUnreadableError: One cannot be read.
    """
    brokers = tuple(read_broker_settings(each) for each in broker_configs)
    return Settings(brokers, read_given_settings(config))


def read_broker_settings(path: str) -> BrokerSettings:
    """Read a `server.properties` (``java.util.Properties``: lines that go on, `=`, `:`, blanks).

    Raises:
        InputNotRecognizedError: It sets nothing that Kafka knows.
        InputNotRecognizedError: It names a node that is no number.
        InputUnreadableError: It cannot be read.
    """
    values = _properties(_latin(path))
    if not any(is_setting(name) for name in values):
        raise InputNotRecognizedError(
            f"{path}: this is not a server.properties: looked for settings of Kafka's brokers, "
            "such as node.id, log.dirs or offsets.retention.minutes, and found none"
        )
    node = next((values[name] for name in _NODE if values.get(name)), None)
    if node is not None:
        number = whole_number(node, "node.id", path, least=-MOST_INT - 1, most=MOST_INT)
    return BrokerSettings(path, None if node is None else number, values)


def read_client_properties(path: str | None) -> dict[str, str]:
    """Read the properties of a client, as `--command-config` of Kafka's tools; None has none.

    Raises:
        InputNotRecognizedError: There is no such file, or it is not UTF-8.
        InputUnreadableError: It cannot be read.
    """
    return {} if path is None else _properties(read_text(path))


def read_given_settings(path: str | None) -> GivenSettings:
    """Read the file of `--config`; None has nothing.

    Raises:
        InputNotRecognizedError: It sets nothing, or something that nobody reads.
        InputNotRecognizedError: It is no YAML, or not of that shape.
        InputUnreadableError: It cannot be read.
    """
    if path is None:
        return GivenSettings()
    from ruamel.yaml import YAML  # noqa: PLC0415 - rarely needed
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        document = YAML(typ="safe", pure=True).load(read_text(path)) or {}
    except (YAMLError, ValueError, OverflowError) as error:
        why = " ".join(str(error).split())
        raise InputNotRecognizedError(f"{path}: this is not YAML: {why:.300}") from error
    except RecursionError as error:
        raise InputNotRecognizedError(f"{path}: this is nested too deep") from error
    if not isinstance(document, dict):
        raise InputNotRecognizedError(f"{path}: looked for settings by name and found none")
    groups = _mapping(document.pop(_GROUPS, None), path, _GROUPS)
    rules = _mapping(document.pop(_RULES, None), path, _RULES)
    findings = _mapping(document.pop(_FINDINGS, None), path, _FINDINGS)
    suppressions = document.pop(_SUPPRESSIONS, None) or ()
    # Arrow is heavy: most commands are given no file.
    from analytics.questions.findings.configured_rules import configured_rules, suppressions_of  # noqa: PLC0415

    configured_rules(findings)
    suppressions_of(suppressions)
    given = GivenSettings(
        _flat(document),
        {str(name): _flat(_mapping(said, path, str(name))) for name, said in groups.items()},
        rules,
        findings,
        suppressions,
    )
    _check_names(path, given)
    return given


def _check_names(path: str, settings: GivenSettings) -> None:
    if settings == GivenSettings():
        raise InputNotRecognizedError(
            f"{path}: this file sets nothing: looked for names of Kafka's settings, such as "
            f"offsets.retention.minutes, for {_GROUPS}: and for {_RULES}:"
        )
    for name in settings.values:
        if not is_setting(name):
            near = nearest_setting(name, BROKER, (_GROUPS, _RULES, _FINDINGS, _SUPPRESSIONS))
            raise _unknown(f"{path}: unknown setting", name, near)
    for group, name in ((group, name) for group, said in settings.groups.items() for name in said):
        if not is_setting(name, GROUP):
            near = nearest_setting(name, GROUP)
            raise _unknown(f"{path}: {_GROUPS}: {group}: unknown setting", name, near)
    for question, said in settings.rules.items():
        _check_rules(path, question, said)


def _check_rules(path: str, question: str, rules: Any) -> None:  # noqa: ANN401 - as YAML has it
    if question not in QUESTIONS:
        near = nearest_name(question, QUESTIONS)
        raise _unknown(f"{path}: {_RULES}: unknown question", question, near)
    of_question = _mapping(rules, path, f"{_RULES}: {question}")
    known = thresholds(question)
    for name in of_question:
        if name not in known:
            near = nearest_name(str(name), known)
            raise _unknown(f"{path}: {_RULES}: {question}: unknown threshold", name, near)
    try:
        checked(question, of_question)
    except SchemaError as error:
        raise InputNotRecognizedError(f"{path}: {_RULES}: {error}") from error


def _unknown(where: str, name: str, near: str | None) -> InputNotRecognizedError:
    return InputNotRecognizedError(
        f"{where} {name!r}" + (f"; did you mean {near!r}?" if near else "")
    )


def _latin(path: str) -> str:
    """Return the text of properties: no name or number in them depends on the encoding."""
    return read_bytes(path).removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace")


def _mapping(value: Any, path: str, name: str) -> dict[str, Any]:  # noqa: ANN401 - as YAML has it
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputNotRecognizedError(f"{path}: {name}: must be a mapping of names to values")
    return value


def _flat(document: Mapping[Any, Any], prefix: str = "") -> dict[str, str]:
    """Return settings by their whole names, also where they were written as a tree."""
    found: dict[str, str] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            found[f"{prefix}{name}"] = str(value)
    return found


def _properties(text: str) -> dict[str, str]:
    return dict(_pair(each.strip()) for each in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines as ``java.util.Properties`` reads them.

    A line goes on behind an odd number of backslashes: of an even one each stands for itself. Of a
    comment nothing goes on.
    """
    held, goes_on = "", False
    for line in re.split(r"\r\n|\r|\n", text):
        rest = line.lstrip(" \t\f")
        if not goes_on and rest[:1] in ("", "#", "!"):
            continue
        goes_on = (len(rest) - len(rest.rstrip("\\"))) % 2 == 1
        held += rest[:-1] if goes_on else rest
        if held and not goes_on:
            yield held
            held = ""
    if held:
        yield held


def _pair(line: str) -> tuple[str, str]:
    match = re.fullmatch(r"((?:[^=:\s\\]|\\.)*)\s*[=:\s]?\s*(.*)", line)
    name, value = match.groups() if match else (line, "")
    return _unescaped(name), _unescaped(value)


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _unescaped(text: str) -> str:
    def sign(match: re.Match[str]) -> str:
        code, character = match.groups()
        return chr(int(code, 16)) if code else _CONTROLS.get(character, character)

    return _ESCAPE.sub(sign, text)


_HEAD_PART = """\
# Settings, thresholds and accepted findings, for --config of every command.
# Values are the defaults: leave out what you do not change.

# Kafka's own settings, where no broker's server.properties is at hand:
# offsets.retention.minutes: 10080

# Kafka's settings of single groups:
# groups:
#   nightly-ledger:
#     offsets.retention.minutes: 43200
"""
_RULES_PART = """
# How each question is judged.
rules:
"""
_FINDINGS_PART = """
# What an audit and --fail-on look for. `enabled: false` switches a rule off.
findings:
"""
_TAIL_PART = """
# Findings that are accepted for a while. An entry that has ended is a finding itself.
# suppressions:
#   - rule: offsets_stale
#     group_id: "legacy-*"
#     reason: "moves to the new topic with release 12"
#     owner: "platform team"
#     until: 2027-01-31
"""


def starting_config(
    rules: Iterable[FindingRule], questions: Mapping[str, Mapping[str, Threshold]]
) -> str:
    """Return the text of the file: YAML with comments.

    Args:
        rules: Of findings.
        questions: By question its thresholds.
    """
    lines = [line for name, said in questions.items() for line in _question(name, said)]
    found = [line for rule in rules for line in _lines(rule)]
    return "\n".join(
        [_HEAD_PART + _RULES_PART + "\n".join(lines), _FINDINGS_PART + "\n".join(found), _TAIL_PART]
    )


def _question(name: str, said: Mapping[str, Threshold]) -> Iterator[str]:
    yield f"  {name}:"
    about = None
    for threshold, each in said.items():
        if each.about != about:
            about = each.about
            yield from (f"    # {line}" for line in wrap(about, 96, break_on_hyphens=False))
        yield f"    {threshold}: {_number(each.value)}"


def _lines(rule: FindingRule) -> Iterator[str]:
    yield f"  # {rule.question}"
    yield f"  {rule.name}:"
    yield f"    severity: {rule.severity}"
    for name, each in rule.thresholds.items():
        yield f"    {name}: {_number(each.value)}  # {each.unit}. {each.about}"


def _number(value: float) -> str:
    return str(int(value) if value == int(value) else value)
