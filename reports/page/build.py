"""The model of a page, made of what a workspace holds."""

from __future__ import annotations

from typing import Final

from reports.page.model import Cell, Page
from reports.page.sections import findings as found
from reports.page.sections.foot import foot_of
from reports.page.sections.group_stories import groups_with_stories, stories_of
from reports.page.sections.groups import counts_of, groups_grid
from reports.page.sections.head import copies_of, coverage_of, facts_of
from reports.page.sections.verdict import checked_of, is_of_coverage, reasons, verdict_of
from reports.page.subjects import subjects_of
from reports.page.workspace_tables import WorkspaceTables
from reports.quantities import count
from schemas.finding_rules import SEVERITIES

TABLES: Final = (
    *("findings", "applied_rules", "finding_changes", "suppressions"),
    *("audited_groups", "audited_group_counts", "offset_verdicts"),
    *("lag", "offset_expiration", "retention_what_if", "offset_removals"),
    *("assignment_balance", "assignment_alternatives"),
    *("rebalances", "group_churn", "rebalance_storms"),
    *("share_backlog", "share_delivery_counts", "share_batches"),
    *("log_cleaning", "coordinator_load", "committers"),
    *("divergences", "load_faults", "coordinator_epochs", "data_quality"),
)
"""What a page reads; of `OF_GROUPS` it reads what is of the groups that it shows."""

OF_GROUPS: Final = ("offset_history", "assignment_history", "group_events")
OF_STORIES: Final = (*OF_GROUPS, "findings", "offset_verdicts")
"""What stories of groups are made of."""

_WORDS: Final = {"critical": "critical", "warning": "warnings", "info": "worth knowing"}


def page_of(read: WorkspaceTables) -> Page:
    """Return the page.

    Args:
        read: `TABLES` and `OF_GROUPS`, as far as the workspace has them.
    """
    told = groups_with_stories(read)
    stories = frozenset(told)
    rules = found.rules_found(read, stories)
    subjects = _subjects(read)
    cannot_tell = tuple(
        each for each in rules if is_of_coverage(each.name, subjects.get(each.name, ""))
    )
    rest = tuple(each for each in rules if each not in cannot_tell)
    shown = frozenset(each.finding_id for one in rules for each in one.shown)
    left_open = tuple(reasons(read, cannot_tell))
    facts = facts_of(read)
    return Page(
        title=f"Audit of {facts[0].value.text}",
        facts=facts,
        copies=copies_of(read.manifest),
        coverage=coverage_of(read, is_open=bool(left_open)),
        counts=_counts(read),
        verdict=verdict_of(rules),
        checked=checked_of(read, rules),
        rules=rest,
        gone=found.gone(read),
        cannot_tell=left_open,
        cannot_tell_rules=cannot_tell,
        groups=groups_grid(read, stories),
        group_counts=counts_of(read),
        foot=foot_of(read),
        subjects=subjects_of(read, stories),
        stories=stories_of(read, told, shown),
    )


def _subjects(read: WorkspaceTables) -> dict[str, str]:
    rows = read.rows("applied_rules")
    return dict(zip(rows["rule"].to_pylist(), rows["subject"].to_pylist(), strict=True))


def _counts(read: WorkspaceTables) -> tuple[Cell, ...]:
    counts = read.summary["findings"]
    cells = []
    for each in SEVERITIES:
        word = "warning" if each == "warning" and counts[each] == 1 else _WORDS[each]
        cells.append(Cell(f"{counts[each]:,} {word}", tone=each if counts[each] else ""))
    suppressed = read.summary.get("suppressed", 0)
    if suppressed:
        cells.append(Cell(f"{count(suppressed, 'finding')} accepted"))
    return tuple(cells)
