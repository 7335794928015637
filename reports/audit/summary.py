"""An audit in short: how much was found, how bad, and why the command ended as it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from reports.layout.paragraphs import paragraphs
from reports.quantities import count
from schemas.finding_rules import SEVERITIES

SCHEMA_VERSION: Final = 1
_WORST: Final = 10
_ENDED: Final = {
    0: "nothing as severe as --fail-on was found",
    1: "something as severe as --fail-on was found",
    3: "some of the input could not be read, or an answer cannot be told",
}


def summary_of(
    found: pa.Table, accepted: pa.Table, said: Mapping[str, Any], code: int, fail_on: str
) -> dict[str, Any]:
    """Return what `summary.json` says.

    Args:
        found: Rows of `findings`, the most severe first.
        accepted: What was suppressed, by entry.
        said: Of the answer: `as_of`, `input`.
        code: The exit code.
        fail_on: The option.
    """
    rows = found.select(["severity", "rule", "finding_id", "message"]).to_pylist()
    severities = Counter(row["severity"] for row in rows)
    return {
        "schema_version": SCHEMA_VERSION,
        "as_of": said["as_of"],
        "input": said["input"],
        "kafka_version": said.get("kafka_version"),
        "findings": {each: severities[each] for each in SEVERITIES},
        "by_rule": dict(sorted(Counter(row["rule"] for row in rows).items())),
        "suppressed": sum(accepted["suppressed"].to_pylist()),
        "could_not_be_asked": dict(said.get("could_not_be_asked", {})),
        "worst": rows[:_WORST],
        "fail_on": fail_on,
        "exit_code": code,
        "exit_reason": _ENDED.get(code, ""),
    }


def sentence_of(summary: Mapping[str, Any]) -> str:
    """Return the counts in one sentence, and what could not be asked."""
    counts = summary["findings"]
    parts = [
        f"{counts['critical']:,} critical",
        count(counts["warning"], "warning"),
        f"{counts['info']:,} worth knowing",
    ]
    suppressed = summary["suppressed"]
    accepted = f"; {count(suppressed, 'finding')} suppressed" if suppressed else ""
    failed = [
        f"{name} could not be asked: {why}" for name, why in summary["could_not_be_asked"].items()
    ]
    return paragraphs([f"{', '.join(parts)}{accepted}", *failed])
