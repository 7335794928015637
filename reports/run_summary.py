"""What `decode` and `replay` print when they are done.

`decode`: the manifest's accounts; `replay`: the instant, the release, and the rows of each table;
both: what the dump lacks.

What `snapshot` says of the dump that it has taken.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from reports.layout.output_format import width_of
from reports.plain_text import Aligned, Block, count, lines_of, paragraphs, ranges
from schemas import record_types
from schemas.names import COORDINATOR_TOPICS
from schemas.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.manifest import AsOfEntry, Manifest, PartitionEntry, RecordTypeEntry


_MOST_GROUPS = 3
_UNSELECTED = "unselected_type:"

_MOST_NAMED = 20


def decode_summary(manifest: Manifest, output_format: str) -> str:
    """Return the summary in ``text`` or ``json``."""
    if output_format == "json":
        return json.dumps(manifest, indent=1, ensure_ascii=False)
    width = width_of(output_format)
    parts = [*_record_types(manifest), *_divergences(manifest), *_sums(manifest)]
    return "\n".join([*lines_of(parts, width), *_missing(manifest, width)])


def _missing(manifest: Manifest, width: int) -> list[str]:
    sentences = [f"missing: {each}" for each in missing_records(manifest)]
    return [paragraphs(sentences, width)] if sentences else []


def _record_types(manifest: Manifest) -> list[Block]:
    found: dict[tuple[str, str | None], list[RecordTypeEntry]] = {}
    for each in manifest["record_types"]:
        if each["line"]:
            continue
        found.setdefault((each["topic"], each["table"]), []).append(each)
    rows: list[tuple[str, str | None, int, str]] = [
        (topic, table, sum(each["records"] for each in kinds), _versions(kinds))
        for (topic, table), kinds in found.items()
    ]
    markers = sum(each["control_markers"] for each in manifest["reconciliation"])
    rows += [("", "control_markers", markers, "")] if markers else []
    return [Aligned(("TOPIC", "TABLE", "RECORDS", "VERSIONS"), rows), ""]


def _versions(kinds: Sequence[RecordTypeEntry]) -> str:
    words = []
    for each in kinds:
        if each["version"] is None:
            words.append("tombstones")
        else:
            layout = f" ({each['layout']})" if each["layout"] else ""
            words.append(f"{each['version']}{layout}")
    return ", ".join(sorted(set(words)))


def _divergences(manifest: Manifest) -> list[Block]:
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
            _some(each["groups_only_there"] or ()),
        )
        for each in manifest["divergences"]
    ]
    return ["Lines of history that did not survive", "", Aligned(heads, rows), ""]


def _some(groups: Sequence[str]) -> str:
    more = len(groups) - _MOST_GROUPS
    return ", ".join(groups[:_MOST_GROUPS]) + (f" and {more} more" if more > 0 else "")


def _sums(manifest: Manifest) -> list[Block]:
    accounts = manifest["reconciliation"]
    records = sum(each["records"] for each in accounts)
    decoded = sum(each["decoded"] for each in accounts)
    markers = sum(each["control_markers"] for each in accounts)
    left_out, undecoded = Counter[str](), Counter[str]()
    for each in accounts:
        for rule, number in each["left_out"].items():
            left_out[_rule(each["topic"], rule)] += number
        undecoded.update(each["undecoded"])
    lines: list[Block] = [f"{records:,} records: {decoded:,} decoded, {markers:,} control markers"]
    lost = Counter[str]()
    for kind in manifest["record_types"]:
        lost[kind["line"]] += kind["records"]
    whole = Counter[str]()
    for line in manifest["divergences"]:
        whole[line["copy"]] += line["lost_records"]
    lines += [_of_lost_line(copy, lost[copy], whole[copy]) for copy in sorted(lost) if copy]
    lines += [f"  skipped: {number:,} {rule}" for rule, number in sorted(left_out.items())]
    lines += [f"  undecoded: {number:,} {why}" for why, number in sorted(undecoded.items())]
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


def _rule(topic: str | None, rule: str) -> str:
    """Return a rule, with the name of the record type instead of its number."""
    if topic is None:
        return rule
    _, _, number = rule.partition(_UNSELECTED)
    known = record_types(topic).get(int(number)) if number.isdecimal() else None
    return known.table if known else rule


def replay_summary(manifest: Manifest, as_of: Mapping[str, Any], output_format: str) -> str:
    """Return the summary in ``text`` or ``json``.

    Args:
        manifest: Of the workspace; its section ``replay`` is what is shown.
        as_of: The instant as answers have it.
        output_format: ``text`` or ``json``.
    """
    replay = manifest["replay"]
    if output_format == "json":
        answer = {
            "schema_version": manifest["schema_version"],
            "as_of": as_of,
            "input": manifest["created_from"],
            "kafka_version": replay["kafka_version"],
            "lines": replay.get("lines", []),
            "missing": missing_records(manifest),
            "assumed": replay.get("assumed", []),
            "rows": [{"table": name, "rows": rows} for name, rows in replay["rows"].items()],
        }
        return json.dumps(answer, indent=1, ensure_ascii=False)
    width = width_of(output_format)
    sentences = [
        *(f"assumed: {each}" for each in replay.get("assumed", ())),
        f"as of {_instant(replay['as_of'])}, by the rules of Kafka {replay['kafka_version']}",
    ]
    rows = Aligned(("TABLE", "ROWS"), list(replay["rows"].items()))
    return "\n".join(
        [*lines_of([rows, ""], width), paragraphs(sentences, width), *_missing(manifest, width)]
    )


def _instant(as_of: AsOfEntry) -> str:
    named = [f"{name} at {end}" for name, end in as_of["offsets"].items()]
    if as_of["time"] is not None:
        named.insert(0, str(as_of["time"]))
    return ", ".join(named) or "the end of the dump"


def missing_records(manifest: Manifest) -> list[str]:
    """Return one sentence for each thing a dump lacks; none where it lacks nothing.

    Args:
        manifest: Of the workspace.
    """
    partitions = [each for each in manifest["partitions"] if each.get("is_leading", True)]
    lacking = [lacks for each in partitions if (lacks := each.get("lacks"))]
    more = len(lacking) - _MOST_NAMED
    return [
        *lacking[:_MOST_NAMED],
        *([f"{count(more, 'more partition')} lack records: see manifest.json"] if more > 0 else []),
        *_absent(manifest),
        *_damaged(partitions),
    ]


def _absent(manifest: Manifest) -> Iterator[str]:
    for topic, numbers in _absent_partitions(manifest):
        yield f"no copy of {topic} {ranges(numbers)}"


def _absent_partitions(manifest: Manifest) -> Iterator[tuple[str, list[int]]]:
    """Yield topics of which the dump has no copy of some partitions, and these.

    Args:
        manifest: Of the workspace.
    """
    for topic, absent in manifest.get("absent_partitions", {}).items():
        if absent:
            yield topic, list(absent)


def _damaged(partitions: list[PartitionEntry]) -> Iterator[str]:
    size = sum(each.get("bytes_damaged") or 0 for each in partitions)
    if size:
        yield f"{count(size, 'damaged byte')} could not be read: see the table undecoded"


_MOST_UNREAD: Final = 3
_VERDICTS: Final = {
    "contradicts": "that nothing explains",
    "explained": "explained by what was written or answered since",
    "cannot_tell": "that cannot be judged",
}
"""By the verdicts of `cluster_differences`."""


def snapshot_text(
    snapshot: Snapshot, out: str, width: int, held: Mapping[str, Any] | None = None
) -> str:
    """Return lines for people: what lies where, and what holding it against its cluster gave.

    Args:
        snapshot: As it was taken.
        out: Where it lies.
        width: How many columns a line has.
        held: The summary of the question `cluster`; null where it was not asked.
    """
    return "\n".join(lines_of((*_lines(snapshot, out), _held_text(held)), width))


def snapshot_json(snapshot: Snapshot, differences: Mapping[str, Any] | None) -> str:
    """Return what programs are told: `snapshot.json`, and what differs from the cluster.

    Args:
        snapshot: As it was taken.
        differences: `verdicts` with their numbers, `rows` of `cluster_differences`, and the `gaps`
            of what cannot be told; null where it was not held against the cluster.
    """
    document = {**msgspec.to_builtins(snapshot), "cluster_differences": differences}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def _held_text(held: Mapping[str, Any] | None) -> str:
    if held is None:
        return "  not held against the cluster"
    verdicts: Mapping[str, int] = held["verdicts"]
    number = sum(verdicts.values())
    if not number:
        return "  held against the cluster: it answered the same"
    parts = [f"{verdicts[name]:,} {words}" for name, words in _VERDICTS.items() if verdicts[name]]
    return f"  held against the cluster: {_count(number, 'difference')}, {', '.join(parts)}"


def _lines(snapshot: Snapshot, out: str) -> Iterator[str]:
    cluster = snapshot.cluster_id or "without an id"
    brokers = len(snapshot.brokers)
    yield f"{out}: cluster {cluster}, {_count(brokers, 'broker')}, as of {snapshot.taken_at}"
    for topic in COORDINATOR_TOPICS:
        logs = [each for each in snapshot.logs if each.topic == topic]
        if logs:
            size = sum(each.bytes for each in logs)
            read = sum(each.failure is None for each in logs)
            of_so_many = "" if read == len(logs) else f"{read:,} of "
            yield f"  {topic}: {of_so_many}{_count(len(logs), 'partition')}, {size:,} bytes"
    if snapshot.resumed_from is not None:
        yield from _resumed(snapshot)
    topics = sum(1 for each in snapshot.topics if each.topic not in COORDINATOR_TOPICS)
    groups = len(snapshot.groups)
    yield f"  snapshot.json: {_count(topics, 'other topic')}, {_count(groups, 'group')}"
    yield "  end-offsets.csv: where logs start and end, for --end-offsets"


def _resumed(snapshot: Snapshot) -> Iterator[str]:
    held = [each for each in snapshot.logs if each.fetched_from is not None]
    yield (
        f"  goes on from the snapshot of {snapshot.resumed_from}: of "
        f"{_count(len(held), 'partition')} only what is new was fetched"
    )
    again = [each for each in snapshot.logs if each.why_whole is not None]
    for each in again[:_MOST_UNREAD]:
        yield f"  {each.topic}-{each.partition} was read whole again: {each.why_whole}"
    if len(again) > _MOST_UNREAD:
        more = len(again) - _MOST_UNREAD
        yield f"  and {more} more, which snapshot.json has with `why_whole`"


def unread_text(snapshot: Snapshot) -> str:
    """Return one line: what was not read, and why."""
    shown = [f"{each.what} ({each.reason})" for each in snapshot.unread[:_MOST_UNREAD]]
    more = len(snapshot.unread) - len(shown)
    rest = f" and {more} more, which snapshot.json lists as `unread`" if more else ""
    return f"not read: {', '.join(shown)}{rest}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
