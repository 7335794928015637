"""A file for `--config` to start from: every rule with its severity and thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap

from schemas.finding_rules import FindingRule
from schemas.thresholds import Threshold

_HEAD = """\
# Settings, thresholds and accepted findings, for --config of every command.
# Values are the defaults: leave out what you do not change.

# Kafka's own settings, where no broker's server.properties is at hand:
# offsets.retention.minutes: 10080

# Kafka's settings of single groups:
# groups:
#   nightly-ledger:
#     offsets.retention.minutes: 43200
"""
_RULES = """
# How each question is judged.
rules:
"""
_FINDINGS = """
# What an audit and --fail-on look for. `enabled: false` switches a rule off.
findings:
"""
_TAIL = """
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
    return "\n".join([_HEAD + _RULES + "\n".join(lines), _FINDINGS + "\n".join(found), _TAIL])


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
