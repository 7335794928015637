"""What `expiration` does: settle rules and retention, evaluate, and say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analytics.gaps.group_selection import select_groups
from analytics.questions.expiration.question import (
    ChosenRules,
    ExpirationFound,
    chosen_rules,
    evaluate_expiration,
)
from analytics.questions.expiration.retention_settings import (
    MINUTE_MS,
    RetentionFound,
)
from analytics.replayed.end_offsets import end_offsets_at
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.cli.options.fail_on import NEVER
from jobs.runs.audit.findings_of import failing
from jobs.runs.describe.source import NEEDS as DESCRIBED
from jobs.runs.describe.source import describe_source
from jobs.runs.expiration.summed_up import as_format, is_up_to_us, summed_up
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
from reports.layout.worst_rows import MOST, SHOWN
from reports.row_formats import render
from schemas.expiration_rules import group_endings

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from reports.describe.source import Source
    from reports.layout.output_format import OutputFormat

MAKES = ("offset_expiration", "offset_removals", "retention_what_if")
_NEEDS = (*DESCRIBED, "configs", "pending_offsets")


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
        asked, settings = select_groups(state), state.settings
        report_groups(console, asked)
        rules = chosen_rules(
            state, settings, wanted.minutes, wanted.era, options.get("kafka_version")
        )
        _report_rules(console, rules)
        asked_format, out = as_format(wanted.output_format), options.get("out")
        # What is not shown, kept or held against rules need not be held.
        is_short = is_up_to_us(asked_format) and asked_format.sort is None
        is_short = is_short and out is None and state.fail_on == NEVER
        made = evaluate_expiration(
            state,
            asked,
            rules,
            end_offsets_at(state, wanted.end_offsets),
            settings,
            with_requests=out is not None or _shows_requests(asked_format),
            most=MOST if is_short else None,
        )
        groups, held = asked.found, made.tables["offset_expiration"]
        if is_few := held.num_rows < made.offsets:
            groups = only_groups(groups, held)
        source = describe_source(state, groups, wanted.end_offsets, console, is_few=is_few)
        if out is not None:
            keep_evaluations(Workspace(out), made.tables, state)
        for each in made.doubts:
            console.error(f"cannot tell: {each}")
        found = rules.retention
        said = {
            **state.response_metadata,
            "rules": rules.era.era.name,
            "rules_said": rules.era.said,
            "retention": list(found.said),
            "retention_in_force": _in_force(found),
            "retention_tried": list(found.minutes),
            "findings": list(found.findings),
            "group_endings_said": dict(group_endings()),
            "cannot_tell": list(made.cannot_tell),
        }
        answer = _answer(made, source, asked_format, said)
        code = groups_exit_code(asked) or state.exit_code or (CANNOT_TELL if made.doubts else DONE)
        code = code or failing(console, state, made.tables)
    return answer, code


def _shows_requests(wanted: OutputFormat) -> bool:
    return wanted.table == "requests" if wanted.table else wanted.is_for_programs


def _report_rules(console: Console, rules: ChosenRules) -> None:
    for each in (rules.era.said, *rules.retention.said):
        console.say(each)
    for each in rules.retention.findings:
        console.warn(each)


def _in_force(found: RetentionFound) -> dict[str, Any]:
    each = found.retention.otherwise
    return {
        "retention_minutes": each.retention_ms // MINUTE_MS,
        "retention_source": each.source,
        "check_interval_ms": each.check_interval_ms,
    }


def _answer(
    found: ExpirationFound, source: Source, asked: OutputFormat, said: dict[str, Any]
) -> str:
    made, fates = found.tables, found.fates
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
            group_section(fates, for_people=False),
            *beside,
        ]
        return render(sections, asked, said)
    wanted, numbers = summed_up(asked, fates)
    shortest, more = expiration, 0
    # Who sorts rows by a column picks them from all.
    most = SHOWN if numbers and wanted.sort is None else None
    if most:
        shortest = worst_offsets(expiration, most)
        more = found.offsets - most
        source = replace(source, groups=only_groups(source.groups, shortest))
    told = [said["rules_said"], *said["retention"], *said["findings"], *filter(None, [numbers])]
    parts = [paragraphs(told)]
    sections = [
        group_section(fates, for_people=True, most=most),
        offset_section(
            shortest,
            offset_rows(source, release),
            for_people=True,
            has_notes=found.notes.num_rows > 0,
            more=more,
        ),
        removal_section(removals),
        what_if_section(what_if, most),
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
