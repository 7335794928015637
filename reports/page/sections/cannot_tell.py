"""What a dump cannot tell, in words, with what to copy next time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reports.missing_records import missing_records
from reports.page.model import Reason, Rule
from reports.page.texts import harmless
from reports.page.workspace_tables import WorkspaceTables

_SETTINGS: Final = "Give the brokers' settings with --broker-config server.properties."
_ENDS: Final = (
    "Copy the data topics' log directories too, or give --end-offsets from kafka-get-offsets."
)
_EVERY: Final = (
    "Copy every partition of the internal topics, from every broker, with its checkpoint files."
)
_SOONER: Final = "Copy sooner: what compaction took before the copy is gone."
_FILES: Final = "Copy these files again from the broker, or from another replica."
ADVICE: Final = {
    "assignment_not_told": _EVERY,
    "bytes_damaged": _FILES,
    "expiry_not_told": _SETTINGS,
    "group_not_whole": _EVERY,
    "history_not_told": _SOONER,
    "lag_not_told": _ENDS,
    "partitions_absent": _EVERY,
    "records_missing": _FILES,
    "removal_not_judged": _SETTINGS,
    "share_state_not_told": "Copy every partition of __share_group_state.",
}
"""What to do next time, by rule."""

_ALSO: Final = ("assignment_not_told", "history_not_told", "lag_not_told")


def is_of_coverage(rule: str, subject: str) -> bool:
    """Return whether what a rule finds is that something cannot be told."""
    return subject == "coverage" or rule in _ALSO


def reasons(read: WorkspaceTables, rules: tuple[Rule, ...]) -> Iterator[Reason]:
    """Yield what cannot be told.

    Args:
        read: The manifest, and the summary: `could_not_be_asked`.
        rules: Those that found it.
    """
    for name, why in read.summary.get("could_not_be_asked", {}).items():
        yield Reason(f"{name} could not be asked: {harmless(why)}")
    named = {each.name for each in rules}
    if not named & {"records_missing", "partitions_absent", "bytes_damaged"}:
        for sentence in missing_records(read.manifest):
            yield Reason(harmless(sentence), _EVERY)
    for each in rules:
        found = each.shown[0].message if each.count == 1 else each.headline
        yield Reason(found, ADVICE.get(each.name, ""), f"#{each.anchor}")
    for question in read.manifest.get("unanswerable", ()):
        yield Reason(harmless(str(question)))
