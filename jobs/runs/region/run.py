"""What `region` does: read checkpoints, hold them against a dump, and say what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analytics.decode.selection import Selection, names_wanted
from analytics.errors import InputNotRecognizedError
from analytics.gaps.group_selection import select_groups
from analytics.questions.region.contributions import OF_REGIONS, Contribution, Partition
from analytics.questions.region.drains import CANNOT_TELL
from analytics.questions.region.rows import tables_of
from analytics.questions.region.table import Answer, Region, checkpoints_of, evaluate_regions
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from jobs.checkpoints.recognized import read_checkpoints
from jobs.cli import exit_codes
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.cli.settings_files import read_settings
from jobs.runs.region.dump import NEEDS, dumped_groups, owners_then
from jobs.workspaces.replayed import replayed
from reports.layout.paragraphs import paragraphs
from reports.region.rows import sections
from reports.row_formats import render
from schemas.region_rules import region_rules

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.cli.console import Console
    from schemas.region_rules import RegionRules

_MOST_NAMED = 5


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        checkpoints: Files and folders.
        checkpoint_group: The group of checkpoints that name none.
        initial_offsets: A file.
        start_position: Where reading starts in a partition that nothing else tells of.
        end_offsets: A file that says where logs ended.
    """

    checkpoints: tuple[str, ...]
    checkpoint_group: str | None = None
    initial_offsets: str | None = None
    start_position: str | None = None
    end_offsets: str | None = None


def region_of(
    console: Console,
    wanted: Wanted,
    output_format: str,
    *,
    out: str | None,
    inputs: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: A checkpoint, an INPUT or a side file is not what it has to be.
    """
    remarks: list[str] = []
    read = read_checkpoints(wanted.checkpoints, wanted.checkpoint_group, remarks)
    for each in remarks:
        console.warn(each)
    made = _selected(read, options)
    if not made:
        raise InputNotRecognizedError(
            f"{', '.join(wanted.checkpoints)}: no checkpoint of the groups asked for has offsets "
            "of Kafka in it"
        )
    if not inputs:
        settings = read_settings(options["broker_configs"], options["config"])
        rules = region_rules(settings.given.thresholds("region"))
        answer = evaluate_regions(checkpoints_of(made, rules), None, rules)
        console.say("without --dump drains, members and the seek plan are not told")
        said = {"as_of": None, "input": list(wanted.checkpoints)}
        return _rendered(console, answer, tables_of(answer), said, (), output_format, rules)
    groups = sorted({each.key.group_id for each in made if each.key.group_id is not None})
    unnamed = sorted({str(each.key.source or each.key.form) for each in made} - _named(made))
    if not groups:
        raise InputNotRecognizedError(
            f"{', '.join(unnamed)}: names no group: give --checkpoint-group GROUP, whose commits "
            "--dump is asked for"
        )
    if out is None:
        # A workspace that stays holds all groups; others may be asked for later.
        options = {**options, "groups": tuple(groups), "exclude_groups": ()}
    with replayed(console, needs=NEEDS, out=out, inputs=inputs, **options) as whole:
        selection = Selection(groups=tuple(groups), topics=tuple(options["data_topics"]))
        state = replace(whole, tables=StoredTables(whole.tables.workspace, selection))
        rules = region_rules(state.settings.given.thresholds("region"))
        asked = select_groups(state)
        report_groups(console, asked)
        checkpoints = checkpoints_of(made, rules)
        checkpoints = checkpoints_of(made, rules, owners_then(state, checkpoints))
        answer = evaluate_regions(checkpoints, dumped_groups(state, checkpoints, wanted), rules)
        found = tables_of(answer)
        if out is not None:
            keep_evaluations(Workspace(out), found, state)
        said = {**state.response_metadata, "checkpoints": list(wanted.checkpoints)}
        lost = [f"{each} names no group: give --checkpoint-group GROUP" for each in unnamed]
        for each in lost:
            console.error(f"cannot tell: {each}")
        known = (*asked.cannot_tell, *lost)
        text, code = _rendered(console, answer, found, said, known, output_format, rules)
    of_groups = exit_codes.CANNOT_TELL if lost else groups_exit_code(asked)
    return text, of_groups or state.exit_code or code


def _named(made: Sequence[Contribution]) -> set[str]:
    """Return the places whose checkpoints are of a group that is known."""
    return {str(each.key.source or each.key.form) for each in made if each.key.group_id is not None}


def _selected(made: Sequence[Contribution], options: dict[str, Any]) -> list[Contribution]:
    """Return the contributions to checkpoints of groups, and of topics, that are asked for."""
    include, exclude = options["groups"], options["exclude_groups"]
    found = list(made)
    if include or exclude:
        names = sorted({each.key.group_id for each in made if each.key.group_id is not None})
        wanted = set(names_wanted(names, include, exclude))
        found = [each for each in made if each.key.group_id in wanted]
    if options["data_topics"]:
        topics = sorted({topic for each in made for (topic, _), _ in each.offsets})
        kept = set(names_wanted(topics, options["data_topics"]))
        found = [replace(each, offsets=_of_topics(each, kept)) for each in found]
    return found


def _of_topics(made: Contribution, topics: set[str]) -> tuple[tuple[Partition, int | None], ...]:
    return tuple(each for each in made.offsets if each[0][0] in topics)


def _rendered(
    console: Console,
    answer: Answer,
    tables: dict[str, pa.Table],
    said: dict[str, Any],
    known: Sequence[str],
    output_format: str,
    rules: RegionRules,
) -> tuple[str, int]:
    limitations = [each for region in answer.regions for each in _limitations(region)]
    for each in limitations:
        console.error(f"cannot tell: {each}")
    said = {**said, "cannot_tell": [*known, *limitations], "findings": dict(rules.findings)}
    text = render(sections(tables, output_format), output_format, said)
    if output_format not in {"json", "csv"}:
        words = set(tables["region_findings"]["finding"].to_pylist())
        meanings = [f"{word}: {about}" for word, about in rules.findings.items() if word in words]
        text = "\n\n".join([text, *([paragraphs(meanings)] if meanings else [])])
    return text, exit_codes.CANNOT_TELL if limitations else exit_codes.DONE


def _limitations(region: Region) -> list[str]:
    """Return what cannot be told of a group, each reason once with how often."""
    key = region.checkpoints[0].key
    name = key.group_id or key.source or "a group without a name"
    found = []
    unusable = next((each.unusable for each in region.checkpoints if each.unusable), None)
    if unusable is not None:
        found.append(f"where {name} reads on: {unusable}")
    elif region.latest is None:
        found.append(f"{name}: none of its {len(region.checkpoints)} checkpoints is complete")
    elif region.latest.missing is not None and region.present is None:
        found.append(f"{name}: checkpoint {region.latest.key.sequence_id}: {region.latest.missing}")
    if region.present is None:
        return found
    present = region.present
    drains = Counter(each.missing for each in region.drains or () if each.verdict == CANNOT_TELL)
    found += [f"{count} drains of {name}: {why}" for why, count in drains.items()]
    plan = Counter(each.missing for each in region.plan if each.missing is not None)
    found += [f"where {name} reads on in {count} partitions: {why}" for why, count in plan.items()]
    if key.form in OF_REGIONS and present.matched.why_unknown is not None:
        found.append(f"which members of {name} its operators are: {present.matched.why_unknown}")
    return found
