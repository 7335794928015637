"""What `expiration` does: settle rules and retention, evaluate, and say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.expiration.offset_expiration import CANNOT_TELL as DOUBT
from analytics.evaluate.expiration.tables import ExpirationQuestion, LogEnds
from analytics.library.evaluations.chosen_era import ChosenEra, chosen_era
from analytics.library.evaluations.expiry_tables import expiration_evaluated
from analytics.library.evaluations.group_endings import companions_of
from analytics.library.evaluations.retention_settings import (
    MINUTE_MS,
    RetentionFound,
    SettingSources,
    retention_found,
    with_state,
)
from analytics.library.limits.group_selection import asked_groups
from analytics.replay.dump.written_instants import EPOCH
from jobs.cli.incomplete_groups import report_groups
from jobs.runs.audit.findings_of import failing
from jobs.runs.describe.source import NEEDS as DESCRIBED
from jobs.runs.describe.source import describe_source
from jobs.runs.expiration.summed_up import as_format, summed_up
from jobs.runs.replay.replayed import replayed
from reports.describe.consumer_groups import offset_rows
from reports.describe.source import only_groups
from reports.expiration.companions import ending_section, has_problems, request_section
from reports.expiration.rows import (
    group_section,
    offset_section,
    removal_section,
    what_if_section,
    worst_offsets,
)
from reports.layout.nothing import nothing
from reports.layout.paragraphs import paragraphs
from reports.layout.section import raw_section
from reports.layout.worst_rows import SHOWN
from reports.quantities import count as counted
from reports.row_formats import render
from schemas.expiration_rules import audit_rules, group_endings

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.runs.replay.replayed import Replayed
    from reports.describe.source import Source
    from reports.layout.output_format import OutputFormat

CANNOT_TELL = 3
MAKES = ("offset_expiration", "offset_removals", "retention_what_if")
_NEEDS = (*DESCRIBED, "configs", "pending_offsets")
_OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        output_format: text, json, csv or markdown.
        minutes: `--retention-minutes`.
        era: `--rules`; None for auto.
        end_offsets: A file.
    """

    output_format: str
    minutes: tuple[int, ...]
    era: str | None
    end_offsets: str | None


def expiration_of(console: Console, wanted: Wanted, **options: Any) -> tuple[str, int]:  # noqa: ANN401
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT or a side file is not what it has to be.
    """
    with replayed(console, needs=_NEEDS, **options) as state:
        asked = asked_groups(state)
        report_groups(console, asked)
        era = chosen_era(wanted.era, options.get("kafka_version"), state.manifest)
        tables = state.tables
        sources = SettingSources(
            release=state.release,
            brokers=state.settings.brokers,
            given=state.settings.given,
            minutes=wanted.minutes,
        )
        configs, leaders = tables.read("configs"), tables.read("partition_leaders")
        found = retention_found(with_state(sources, configs, leaders))
        _tell(console, era, found)
        source = describe_source(state, asked.found, wanted.end_offsets, console)
        question = _question(state, era, found, source.ends)
        made = expiration_evaluated(state, question, options.get("out"))
        asked_format = as_format(wanted.output_format)
        made |= companions_of(
            state,
            made["offset_removals"],
            question,
            options.get("out"),
            with_requests=_shows_requests(asked_format),
        )
        untold = _untold(made)
        for each in untold:
            console.error(f"cannot tell: {each}")
        said = {
            **state.said,
            "rules": era.era.name,
            "rules_said": era.said,
            "retention": list(found.said),
            "retention_in_force": _in_force(found),
            "retention_tried": list(found.minutes),
            "findings": list(found.findings),
            "group_endings_said": dict(group_endings()),
            "cannot_tell": [*asked.cannot_tell, *untold],
        }
        answer = _answer(made, source, asked_format, said)
        code = asked.exit_code or state.exit_code or (CANNOT_TELL if untold else 0)
        code = code or failing(console, state, made)
    return answer, code


def _shows_requests(wanted: OutputFormat) -> bool:
    return wanted.table == "requests" if wanted.table else wanted.is_for_programs


def _tell(console: Console, era: ChosenEra, found: RetentionFound) -> None:
    console.say(era.said)
    for each in found.said:
        console.say(each)
    for each in found.findings:
        console.warn(each)


def _in_force(found: RetentionFound) -> dict[str, Any]:
    each = found.retention.otherwise
    return {
        "retention_minutes": each.retention_ms // MINUTE_MS,
        "retention_source": each.source,
        "check_interval_ms": each.check_interval_ms,
    }


def _question(
    state: Replayed,
    era: ChosenEra,
    found: RetentionFound,
    ends: pa.Table,
) -> ExpirationQuestion:
    partitions = [
        each
        for each in state.manifest["partitions"]
        if each["topic"] == _OFFSETS_TOPIC and each.get("is_leading", True)
    ]
    cut = [
        int(place.rpartition("-")[2])
        for place in state.as_of["offsets"]
        if place.rpartition("-")[0] == _OFFSETS_TOPIC
    ]
    rows = ends.to_pylist()
    return ExpirationQuestion(
        era=era.era,
        before=era.before,
        retention=found.retention,
        minutes=found.minutes,
        audit=audit_rules(state.settings.given.thresholds("expiration")),
        as_of_ms=_instant_ms(state),
        cut_partitions=frozenset(cut),
        complete_from={
            each["partition"]: each["complete_from"] for each in partitions if each["complete_from"]
        },
        ends=[LogEnds(*(row[name] for name in LogEnds._fields)) for row in rows],
    )


def _instant_ms(state: Replayed) -> int:
    """Return the instant: the one asked about, or the time of the dump's last record."""
    said = state.as_of["time"]
    if said is None:
        times = [
            each["last_timestamp"]
            for each in state.manifest["partitions"]
            if each.get("last_timestamp")
        ]
        said = max(times, default=None)
    if said is None:
        return 0
    return round((datetime.fromisoformat(said) - EPOCH).total_seconds() * 1000)


def _untold(made: Mapping[str, pa.Table]) -> list[str]:
    """Return what cannot be told, each reason once with how often."""
    found = []
    removals = made["offset_removals"]
    for reason, count in _reasons(removals):
        found.append(f"whether {counted(count, 'offset')} were removed rightly: {reason}")
    notes = made["offset_expiration"]["note"]
    doubts = notes.filter(pc.fill_null(pc.starts_with(notes, DOUBT), fill_value=False))
    for note, count in Counter(doubts.to_pylist()).items():
        found.append(
            f"whether and when {counted(count, 'offset')} will expire: {note.removeprefix(DOUBT)}"
        )
    what_if = made["retention_what_if"]
    for reason, count in _reasons(what_if):
        found.append(f"what {counted(count, 'group')} would have lost: {reason}")
    return found


def _reasons(rows: pa.Table) -> Sequence[tuple[str, int]]:
    rows = rows.filter(pc.equal(rows["verdict"], "cannot_tell"))
    counted = pc.value_counts(rows["reason"].combine_chunks()).to_pylist()
    return sorted((each["values"] or "not known", each["counts"]) for each in counted)


def _answer(
    made: Mapping[str, pa.Table], source: Source, asked: OutputFormat, said: dict[str, Any]
) -> str:
    expiration, removals, what_if = (made[name] for name in MAKES)
    release = said["kafka_version"]
    beside = [ending_section(made["group_endings"])]
    if "commit_requests" in made:
        beside.append(request_section(made["commit_requests"]))
    if asked.is_for_programs:
        sections = [
            offset_section(expiration, offset_rows(source, release), for_people=False),
            raw_section(removals, "removals"),
            raw_section(what_if, "what_if"),
            group_section(expiration, for_people=False),
            *beside,
        ]
        return render(sections, asked, said)
    wanted, numbers = summed_up(asked, expiration)
    shortest, whole = expiration, None
    if numbers and wanted.sort is None:
        shortest, whole = worst_offsets(expiration, SHOWN), expiration
        source = replace(source, groups=only_groups(source.groups, shortest))
    told = [said["rules_said"], *said["retention"], *said["findings"], *filter(None, [numbers])]
    parts = [paragraphs(told)]
    sections = [
        group_section(expiration, for_people=True),
        offset_section(shortest, offset_rows(source, release), for_people=True, whole=whole),
        removal_section(removals),
        what_if_section(what_if),
        *beside,
    ]
    # Of what became of groups people are shown what should not be; the rest where they ask.
    sections = [
        each
        for each in sections
        if wanted.table or (each.rows.num_rows and (each not in beside or has_problems(each)))
    ]
    parts.append(render(sections, wanted, said))
    if not expiration.num_rows:
        parts.append(nothing("No group has committed offsets.", said))
    return "\n\n".join(filter(None, parts))
