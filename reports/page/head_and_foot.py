"""The head and the foot of a page: what was read, how the numbers were made, how to make it again.

The head says which cluster, when, and how much of it was read.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from reports.page.model import Cell, Coverage, Fact, Foot, Grid
from reports.page.rows import columns_of, grid_of, name_cell
from reports.page.texts import harmless
from reports.page.workspace_tables import WorkspaceTables
from reports.plain_text import count, size_of
from reports.run_summary import missing_records

if TYPE_CHECKING:
    from schemas.manifest import CopyEntry, Manifest

# The foot: how the numbers were made, rules that applied, how to make it again.

_TONES: Final = {"critical": "critical", "warning": "warning", "info": "info"}
_RULES: Final = columns_of("applied_rules", tones={"severity": _TONES})
_SUPPRESSIONS: Final = columns_of("suppressions")
_SOURCES: Final = {
    "Findings": "evaluations/findings, by the rules below",
    "Groups": "evaluations/audited_groups, made of state/groups, lag, share_backlog and others",
    "Expiry": "evaluations/offset_expiration, retention_what_if",
    "Removals": "evaluations/offset_removals",
    "Lag": "evaluations/lag",
    "Assignment": "evaluations/assignment_balance, assignment_alternatives",
    "Rebalances": "evaluations/rebalances, group_churn, rebalance_storms",
    "Share groups": "evaluations/share_backlog, share_delivery_counts; state/share_batches",
    "Internal topics": "evaluations/log_cleaning, coordinator_load, committers",
    "Capacity": "evaluations/topic_usage, committers",
    "Consistency": "history/divergences, load_faults; evaluations/data_quality",
    "Topics": "evaluations/topic_readers, lag; state/configs; data_logs/data_segments; "
    "history/offset_history",
    "Stories of groups": "history/offset_history, assignment_history, group_events",
}


def foot_of(read: WorkspaceTables) -> Foot:
    """Return the foot.

    Args:
        read: The manifest, the summary, `applied_rules`, `suppressions`.
    """
    summary = read.summary
    return Foot(
        command=harmless(summary.get("command") or _earlier_command(read)),
        exit_code=summary["exit_code"],
        exit_reason=harmless(summary["exit_reason"]),
        sources=tuple(Fact(name, Cell(text)) for name, text in _SOURCES.items()),
        rules=grid_of(
            "rules-table",
            "Rules and thresholds that applied",
            read.rows("applied_rules"),
            _RULES,
            top=500,
            source="evaluations/applied_rules",
        ),
        suppressions=_suppressions(read),
    )


def _earlier_command(read: WorkspaceTables) -> str:
    """Return what an audit is made by whose release did not keep its command."""
    inputs = " ".join(shlex.quote(each) for each in read.manifest.get("created_from", ()))
    return f"groupscope audit {inputs} --out DIR --fail-on {read.summary['fail_on']}"


def _suppressions(read: WorkspaceTables) -> Grid | None:
    rows = read.rows("suppressions")
    if not rows.num_rows:
        return None
    return grid_of(
        "suppressions-table",
        "Findings that were accepted",
        rows,
        _SUPPRESSIONS,
        top=200,
        source="evaluations/suppressions",
    )


_MOST_COPIES: Final = 40

Row = Mapping[str, Any]


def facts_of(read: WorkspaceTables) -> tuple[Fact, ...]:
    """Return what was read, and as of when."""
    manifest, summary = read.manifest, read.summary
    clusters = dict.fromkeys(
        cluster for each in manifest["copies"] if (cluster := each.get("cluster_id"))
    )
    said = {
        "Cluster": ", ".join(clusters) or "not known",
        "As of": _instant(summary["as_of"]),
        "Rules of Kafka": str(summary.get("kafka_version") or "not known"),
        "Internal topics read": _amount(manifest),
        "groupscope": str(manifest.get("groupscope_version", "")),
    }
    return tuple(Fact(name, name_cell(value)) for name, value in said.items())


def _amount(manifest: Manifest) -> str:
    """Return how much was read: bytes of logs, and archived rows, which have no files."""
    partitions = manifest["partitions"]
    size = sum(each["size"] or 0 for each in partitions if each["copy"] is not None)
    rows = [each["records"] or 0 for each in partitions if each["copy"] is None]
    archived = [count(sum(rows), "archived row")] if rows else []
    return " and ".join([*([size_of(size)] if size or not rows else []), *archived])


def _instant(as_of: Row) -> str:
    named = [f"{name} at {end}" for name, end in as_of.get("offsets", {}).items()]
    time = as_of.get("time") or "a time that no record tells"
    end = " (the end of the dump)" if as_of.get("is_end") else ""
    return ", ".join([f"{time}{end}", *named])


def copies_of(manifest: Manifest) -> tuple[Cell, ...]:
    """Return a chip a copy: its name, its node, and whether its broker was stopped cleanly."""
    found = [_chip(each) for each in manifest["copies"]]
    more = len(found) - _MOST_COPIES
    return (*found[:_MOST_COPIES], *([Cell(f"{more} more copies")] if more > 0 else []))


def _chip(copy: CopyEntry) -> Cell:
    node = copy.get("node_id")
    known = "" if node is None else f", node {node}"
    words = {True: "clean shutdown", False: "no clean shutdown", None: "shutdown not known"}
    stopped = words.get(copy.get("clean_shutdown"), words[None])
    tone = "good" if copy.get("clean_shutdown") else "neutral"
    name = name_cell(str(copy["name"]))
    return Cell(f"{name.text}{known}: {stopped}", name.whole, tone=tone)


def coverage_of(read: WorkspaceTables, *, is_open: bool) -> Coverage:
    """Return the badge: `complete`, `gaps`, or `cannot tell much`.

    Args:
        read: The manifest and the summary.
        is_open: Something cannot be told all the same.
    """
    failed = read.summary.get("could_not_be_asked", {})
    unreadable = read.manifest.get("unreadable", ())
    missing = missing_records(read.manifest)
    if failed or unreadable:
        parts = [
            *([f"{count(len(failed), 'question')} could not be asked"] if failed else []),
            *([f"{count(len(unreadable), 'file')} could not be read"] if unreadable else []),
        ]
        return Coverage("cannot tell much", "critical", "; ".join(parts))
    if missing:
        more = len(missing) - 1
        rest = f", and {count(more, 'thing')} more" if more else ""
        return Coverage("gaps", "warning", f"{harmless(missing[0])}{rest}")
    rest = "; what cannot be told all the same is below" if is_open else ""
    return Coverage("complete", "good", f"no record is known to be missing{rest}")
