"""The head of a page: which cluster, when, how much of it was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reports.page.grids import name_cell
from reports.page.model import Cell, Coverage, Fact
from reports.page.texts import harmless
from reports.page.workspace_tables import WorkspaceTables
from reports.quantities import count, size_of
from reports.run_summary import missing_records

COVERAGE: Final = "coverage"
_MOST_COPIES: Final = 40

Row = Mapping[str, Any]


def facts_of(read: WorkspaceTables) -> tuple[Fact, ...]:
    """Return what was read, and as of when."""
    manifest, summary = read.manifest, read.summary
    clusters = dict.fromkeys(
        each["cluster_id"] for each in manifest.get("copies", ()) if each.get("cluster_id")
    )
    said = {
        "Cluster": ", ".join(clusters) or "not known",
        "As of": _instant(summary["as_of"]),
        "Rules of Kafka": str(summary.get("kafka_version") or "not known"),
        "Internal topics read": _amount(manifest),
        "groupscope": str(manifest.get("groupscope_version", "")),
    }
    return tuple(Fact(name, name_cell(value)) for name, value in said.items())


def _amount(manifest: Row) -> str:
    """Return how much was read: bytes of logs, and archived rows, which have no files."""
    partitions = manifest["partitions"]
    size = sum(each["size"] for each in partitions if each["copy"] is not None)
    rows = [each["records"] for each in partitions if each["copy"] is None]
    archived = [count(sum(rows), "archived row")] if rows else []
    return " and ".join([*([size_of(size)] if size or not rows else []), *archived])


def _instant(as_of: Row) -> str:
    named = [f"{name} at {end}" for name, end in as_of.get("offsets", {}).items()]
    time = as_of.get("time") or "a time that no record tells"
    end = " (the end of the dump)" if as_of.get("is_end") else ""
    return ", ".join([f"{time}{end}", *named])


def copies_of(manifest: Row) -> tuple[Cell, ...]:
    """Return a chip a copy: its name, its node, and whether its broker was stopped cleanly."""
    found = [_chip(each) for each in manifest.get("copies", ())]
    more = len(found) - _MOST_COPIES
    return (*found[:_MOST_COPIES], *([Cell(f"{more} more copies")] if more > 0 else []))


def _chip(copy: Row) -> Cell:
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
