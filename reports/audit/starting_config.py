"""A file for `--config` to start from: every rule with its severity and thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schemas.finding_rules import FindingRule

_HEAD = """\
# Settings, thresholds and accepted findings for `groupscope audit --config`.
# Uncomment what you change; the values are the defaults.

# Kafka's own settings, where no broker's server.properties is at hand:
# offsets.retention.minutes: 10080

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


def starting_config(rules: Iterable[FindingRule]) -> str:
    """Return the text of the file: YAML with comments."""
    return _HEAD + "\n".join(line for rule in rules for line in _lines(rule)) + "\n" + _TAIL


def _lines(rule: FindingRule) -> Iterator[str]:
    yield f"  # {rule.question}"
    yield f"  {rule.name}:"
    yield f"    severity: {rule.severity}"
    for name, each in rule.thresholds.items():
        value = int(each.value) if each.value == int(each.value) else each.value
        yield f"    {name}: {value}  # {each.unit}. {each.about}"
