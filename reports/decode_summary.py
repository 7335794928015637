"""What `decode` prints when it is done: the manifest's accounts, as text or as they are."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from reports.columns import columns
from reports.missing_records import missing_records
from schemas import record_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_GROUPS = 3
_UNSELECTED = "unselected_type:"


def render(manifest: Mapping[str, Any], output_format: str) -> str:
    """Return the summary in ``text`` or ``json``."""
    if output_format == "json":
        return json.dumps(manifest, indent=1, ensure_ascii=False)
    missing = [f"missing: {each}" for each in missing_records(manifest)]
    parts = [_record_types(manifest), _divergences(manifest), _sums(manifest), missing]
    return "\n".join("\n".join(part) for part in parts if part)


def _record_types(manifest: Mapping[str, Any]) -> list[str]:
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in manifest["record_types"]:
        if each["line"]:
            continue
        found.setdefault((each["topic"], each["table"]), []).append(each)
    rows: list[tuple[str, str, int, str]] = [
        (topic, table, sum(each["records"] for each in kinds), _versions(kinds))
        for (topic, table), kinds in found.items()
    ]
    markers = sum(each["control_markers"] for each in manifest["reconciliation"])
    rows += [("", "control_markers", markers, "")] if markers else []
    return [*columns(("TOPIC", "TABLE", "RECORDS", "VERSIONS"), rows), ""]


def _versions(kinds: Sequence[Mapping[str, Any]]) -> str:
    words = []
    for each in kinds:
        if each["version"] is None:
            words.append("tombstones")
        else:
            layout = f" ({each['layout']})" if each["layout"] else ""
            words.append(f"{each['version']}{layout}")
    return ", ".join(sorted(set(words)))


def _divergences(manifest: Mapping[str, Any]) -> list[str]:
    if not manifest["divergences"]:
        return []
    heads = ("TOPIC", "PARTITION", "COPY", "DIVERGES-AT", "LOST-RECORDS", "GROUPS-ONLY-THERE")
    rows = [
        (
            each["topic"],
            each["partition"],
            each["copy"],
            each["diverges_at"],
            each["lost_records"],
            _some(each["groups_only_there"]),
        )
        for each in manifest["divergences"]
    ]
    return ["Lines of history that did not survive", "", *columns(heads, rows), ""]


def _some(groups: Sequence[str]) -> str:
    more = len(groups) - _MOST_GROUPS
    return ", ".join(groups[:_MOST_GROUPS]) + (f" and {more} more" if more > 0 else "")


def _sums(manifest: Mapping[str, Any]) -> list[str]:
    accounts = manifest["reconciliation"]
    records = sum(each["records"] for each in accounts)
    decoded = sum(each["decoded"] for each in accounts)
    markers = sum(each["control_markers"] for each in accounts)
    left_out, undecoded = Counter[str](), Counter[str]()
    for each in accounts:
        for rule, count in each["left_out"].items():
            left_out[_rule(each["topic"], rule)] += count
        undecoded.update(each["undecoded"])
    lines = [f"{records:,} records: {decoded:,} decoded, {markers:,} control markers"]
    lost = Counter[str]()
    for each in manifest["record_types"]:
        lost[each["line"]] += each["records"]
    whole = Counter[str]()
    for each in manifest["divergences"]:
        whole[each["copy"]] += each["lost_records"]
    lines += [_of_lost_line(line, lost[line], whole[line]) for line in sorted(lost) if line]
    lines += [f"  skipped: {count:,} {rule}" for rule, count in sorted(left_out.items())]
    lines += [f"  undecoded: {count:,} {why}" for why, count in sorted(undecoded.items())]
    earlier = manifest["before_swaps"]
    apart = [] if earlier is None else earlier["reconciliation"]
    if apart:
        count = sum(each["records"] for each in apart)
        lines.append(
            f"  beside them {count:,} of {len(apart)} partitions as they were before a cleaner's "
            f"swap files: before_swaps/"
        )
    if not all(each["reconciles"] for each in (*accounts, *apart)):
        lines.append("  the sums do NOT add up: this is a bug in groupscope, please report it")
    return lines


def _of_lost_line(line: str, decoded: int, whole: int) -> str:
    """Return how many records of a lost line were decoded; `inspect` counts the others, too."""
    others = whole - decoded
    if others <= 0:
        return f"  of them {decoded:,} only on the lost line of {line}: diverged/{line}/"
    return (
        f"  of them {decoded:,} only on the lost line of {line}: diverged/{line}/ (the line has "
        f"{whole:,}: {others:,} more are control markers, skipped or undecoded)"
    )


def _rule(topic: str, rule: str) -> str:
    """Return a rule, with the name of the record type instead of its number."""
    _, _, number = rule.partition(_UNSELECTED)
    known = record_types(topic).get(int(number)) if number.isdecimal() else None
    return known.table if known else rule
