"""What `restore` writes into its folder, and what it says of it.

The groups that get offsets back, which of Kafka's tools resets each, and what to do before; their
offsets as these tools take them; what was refused; and a shell script, a dry run first. Names of
groups may hold anything, names of files may not.
"""

from __future__ import annotations

import csv
import hashlib
import io
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat
from reports.layout.section import as_main, table_section
from reports.plain_text import count, paragraphs, printable
from reports.row_formats import Text, inert, render, rendered

COMMANDS: Final = "commands.sh"
REFUSED: Final = "refused.csv"

_SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("restore", pa.int64()),
        ("unchanged", pa.int64()),
        ("refused", pa.int64()),
        ("present_state", pa.string()),
        ("file", pa.string()),
        ("note", pa.string()),
    ]
)
_VERDICTS = ("restore", "unchanged", "refused")

_RESETTABLE: Final = ("Empty", "Dead")
"""States in which Kafka's tools reset a group (``ConsumerGroupCommand.resetOffsets``)."""
_CANNOT_TELL: Final = "cannot tell"
_NOBODY: Final = "-"

_CONSUMER_TOOL = "kafka-consumer-groups.sh"
STREAMS_TOOL = "kafka-streams-groups.sh"
_HEAD = """\
#!/bin/sh
# {title}
#
# Needs Kafka's tools on the PATH, and BOOTSTRAP_SERVER=host:port in the environment; where the
# cluster wants credentials, COMMAND_CONFIG=client.properties too.
#
#   sh commands.sh              shows what would change (--dry-run), changes nothing
#   sh commands.sh --execute    shows it, then changes it
#
# Kafka's tools reset groups without members only, put an offset outside the log at its nearest end,
# and end with code 0 even where they fail: read what they print, and describe the groups after.
# They commit without metadata and leader epoch.
set -eu
cd "$(dirname "$0")"
: "${{BOOTSTRAP_SERVER:?give host:port}}"

# --- what would change ------------------------------------------------------------------------
"""
_BETWEEN = """
[ "${1:-}" = --execute ] || exit 0

# --- the change -------------------------------------------------------------------------------
"""

_REFUSED_COLUMNS = (
    *("group_id", "topic", "partition", "committed_offset", "present_offset", "reason", "detail"),
)

_ENDING = ".csv"
_TAKEN = frozenset({"refused"})
"""What the folder holds besides, without the ending."""
_MOST = 200
_PLAIN = "-_.~"


def restore_files(tables: Mapping[str, pa.Table], title: str) -> dict[str, str]:
    """Return the text of the files by name: commands, what is refused, and offsets by group.

    Args:
        tables: `restore_plan` and `restore_groups`.
        title: What is given back, in one line.
    """
    plan = tables["restore_plan"]
    resets = [each.reset for each in _restored_groups(tables["restore_groups"]) if each.reset]
    files = {
        COMMANDS: commands_text(title, resets),
        REFUSED: refused_text(plan.filter(pc.equal(plan["verdict"], "refused"))),
    }
    restored = plan.filter(pc.equal(plan["verdict"], "restore"))
    starts = _starts(restored["group_id"])
    for each in resets:
        start, length = starts[each.group]
        files[each.file] = offsets_text(restored.slice(start, length))
    return files


def restore_text(
    tables: Mapping[str, pa.Table],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    with_offsets: bool,
    notes: Sequence[str],
) -> Text:
    """Return the answer as text.

    Args:
        tables: `restore_plan` and `restore_groups`.
        output_format: The format.
        metadata: What JSON has beside `counts` and `rows`.
        with_offsets: Every offset is shown to people too; programs always get them.
        notes: What people are told besides, one sentence each.
    """
    rows = [each.row for each in _restored_groups(tables["restore_groups"])]
    text = _render_plan(
        rows, tables["restore_plan"], output_format, metadata, with_offsets=with_offsets
    )
    return (
        text
        if output_format.is_for_programs
        else "\n".join(
            ["".join(text), *(paragraphs([each], output_format.width) for each in notes)]
        )
    )


def _starts(names: pa.ChunkedArray) -> dict[str, tuple[int, int]]:
    """Return where the rows of each group start, and how many there are; they are sorted."""
    runs = pc.run_end_encode(names.combine_chunks()) if len(names) else None
    starts: dict[str, tuple[int, int]] = {}
    start = 0
    if runs is not None:
        for name, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            starts[name] = (start, end - start)
            start = end
    return starts


def _render_plan(
    groups: Sequence[Mapping[str, Any]],
    plan: pa.Table,
    output_format: str,
    said: Mapping[str, Any],
    *,
    with_offsets: bool,
) -> Text:
    """Return the summary in one of the formats.

    Args:
        groups: One a group, with the columns that are shown of `restore_groups`.
        plan: As `analytics.questions.restore.plan` makes it.
        output_format: ``text``, ``json``, ``csv`` or ``markdown``.
        said: `as_of`, `input` and what else the JSON object has beside `counts` and `rows`.
        with_offsets: Every offset is shown to people too; programs always get them.
    """
    listed = _kind(pa.Table.from_pylist(list(groups), schema=_SCHEMA), "group")
    by_group = as_main(table_section(listed, "restore_groups", "groups", also=("kind",)))
    kinds = _kind(plan, "offset")
    by_offset = as_main(table_section(kinds, "restore_plan", "offsets", also=("kind",)))
    counts = counts_of(plan)
    if output_format in ("json", "csv"):
        return rendered([by_group, by_offset], output_format, {**said, "counts": counts})
    reasons = counts["reasons"]
    refusals = as_main(
        table_section(
            pa.table({"reason": list(reasons), "offsets": list(reasons.values())}),
            "restore_plan",
            "refusals",
            view="refusals",
        )
    )
    is_asked = getattr(output_format, "table", None) == by_offset.name
    sections = [
        *([by_group] if groups else []),
        *([by_offset] if with_offsets or is_asked else []),
        *([refusals] if reasons else []),
    ]
    return "\n\n".join([*filter(None, [render(sections, output_format, said)]), _in_words(counts)])


def counts_of(plan: pa.Table) -> dict[str, Any]:
    """Return how many offsets have which verdict, and were refused for which reason."""
    verdicts = dict.fromkeys(_VERDICTS, 0)
    for each in pc.value_counts(plan["verdict"].combine_chunks()).to_pylist():
        verdicts[each["values"]] = each["counts"]
    words = plan["reason"].drop_null().combine_chunks()
    single = pc.list_flatten(pc.split_pattern(words, "; "))
    reasons = {each["values"]: each["counts"] for each in pc.value_counts(single).to_pylist()}
    return {**verdicts, "reasons": dict(sorted(reasons.items()))}


def _in_words(counts: Mapping[str, Any]) -> str:
    """Return the verdicts in one line."""
    return (
        f"{count(counts['restore'], 'offset')} to give back, "
        f"{counts['unchanged']:,} there already, {counts['refused']:,} refused"
    )


def _kind(rows: pa.Table, name: str) -> pa.Table:
    return rows.append_column("kind", pa.chunked_array([pa.repeat(name, rows.num_rows)]))


@dataclass(frozen=True)
class RestoredGroup:
    """One group of the plan.

    Attributes:
        row: Its row of the summary.
        reset: Its file and command; None where nothing is given back.
    """

    row: Mapping[str, Any]
    reset: Reset | None


def _restored_groups(rows: pa.Table) -> list[RestoredGroup]:
    """Return the groups in order.

    Args:
        rows: The table `restore_groups`.
    """
    groups = rows.to_pylist()
    names = file_names(each["group_id"] for each in groups if each["restore"])
    return [_restored(each, names.get(each["group_id"])) for each in groups]


def _restored(group: Mapping[str, Any], file: str | None) -> RestoredGroup:
    name = group["group_id"]
    state = group["present_state"] if group["is_present"] else _NOBODY
    row = {
        "group_id": name,
        **{verdict: group[verdict] for verdict in _VERDICTS},
        "present_state": state if group["unknown"] is None else _CANNOT_TELL,
    }
    if file is None:
        return RestoredGroup({**row, "file": None, "note": None}, None)
    notes = _notes(group)
    note = "; ".join(each.removeprefix(name).removeprefix(":").strip() for each in notes) or None
    tool = STREAMS_TOOL if group["group_type"] == "streams" else _CONSUMER_TOOL
    return RestoredGroup(
        {**row, "file": file, "note": note},
        Reset(name, file, tool, notes),
    )


def _notes(group: Mapping[str, Any]) -> list[str]:
    """Return what a person has to know or do first, one sentence each."""
    name, unknown = group["group_id"], group["unknown"]
    notes = []
    if unknown is not None:
        what = "it has members" if group["is_present"] else "it is there"
        notes.append(f"{name}: cannot tell whether {what}: {unknown}")
    elif not group["is_present"]:
        notes.append(f"{name} is not there: its offsets are committed anew")
    elif group["present_state"] not in _RESETTABLE:
        members = count(group["member_count"] or 0, "member")
        notes.append(
            f"{name} is {group['present_state']} with {members}: stop it first, it has to be "
            f"inactive"
        )
    if group["in_transactions"]:
        committed = count(group["in_transactions"], "offset was", "offsets were")
        notes.append(
            f"{name}: {committed} committed in transactions, whose other writes may be lost"
        )
    if group["refused"]:
        notes.append(f"{name}: {count(group['refused'], 'offset')} refused, see refused.csv")
    return notes


@dataclass(frozen=True)
class Reset:
    """One group whose offsets are given back.

    Attributes:
        group: Its name.
        file: Of its offsets, beside the script.
        tool: The name of Kafka's tool.
        notes: What a person has to know or do first, one sentence each.
    """

    group: str
    file: str
    tool: str = _CONSUMER_TOOL
    notes: Sequence[str] = ()


def commands_text(title: str, resets: Sequence[Reset]) -> str:
    """Return the script.

    Args:
        title: What is given back, in one line.
        resets: The groups, in order.
    """
    dry = [line for each in resets for line in _lines(each, "--dry-run")]
    execute = [line for each in resets for line in _lines(each, "--execute")]
    if not resets:
        dry = execute = ["# nothing is given back"]
    head = _HEAD.format(title=printable(title))
    return "\n".join([head, *dry, _BETWEEN, *execute, ""])


def _lines(reset: Reset, mode: str) -> list[str]:
    notes = [f"# {printable(note)}" for note in reset.notes]
    name = shlex.quote(reset.group)
    # A name with a hyphen in front would be taken for an option.
    group = f"--group={name}" if reset.group.startswith("-") else f"--group {name}"
    command = (
        f'{reset.tool} --bootstrap-server "$BOOTSTRAP_SERVER" '
        '${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} '
        f"{group} --reset-offsets --from-file {shlex.quote(reset.file)} {mode}"
    )
    return [*notes, command]


def offsets_text(rows: pa.Table) -> str:
    """Return the lines ``topic,partition,offset`` of one group (``CsvUtils.CsvRecordNoGroup``).

    No header: the tool would take it for an offset. Names of topics need no quotes.

    Args:
        rows: `topic`, `partition`, `committed_offset`.
    """
    columns = (rows[name].to_pylist() for name in ("topic", "partition", "committed_offset"))
    return "".join(f"{topic},{number},{at}\n" for topic, number, at in zip(*columns, strict=True))


def refused_text(rows: pa.Table) -> str:
    """Return `refused.csv`, with a header; no spreadsheet takes a name in it for a formula."""
    columns = (inert(rows[name]).to_pylist() for name in _REFUSED_COLUMNS)
    return _csv(_REFUSED_COLUMNS, zip(*columns, strict=True))


def _csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return out.getvalue()


def file_names(groups: Iterable[str]) -> dict[str, str]:
    """Return a file name for each group, the group's own where that is harmless.

    What is not a letter, a digit or one of `-_.~` is percent-encoded as in a URL, as is the first
    character of a name that begins with a dot or hyphen or is taken. Names that are too long, or
    that differ only in case, are told apart by a digest.
    """
    names: dict[str, str] = {}
    taken = set(_TAKEN)
    for group in sorted(groups):
        name = _encoded(group)
        if len(name) > _MOST or name.casefold() in taken:
            digest = hashlib.sha256(group.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            name = f"{name[:_MOST]}%{digest}"
        taken.add(name.casefold())
        names[group] = name + _ENDING
    return names


def _encoded(group: str) -> str:
    if not group:
        return "%"
    name = quote(group, safe=_PLAIN, errors="surrogatepass")
    if group[0] in ".-" or name.casefold() in _TAKEN:
        name = f"%{ord(group[0]):02X}{quote(group[1:], safe=_PLAIN, errors='surrogatepass')}"
    return name
