"""What `rebalances` does: epochs, churn, storms and what stands still, in the time asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from analytics.questions.rebalances.question import NEEDS, evaluate_rebalances
from analytics.replay.dump.times import resolved_time
from analytics.replay.dump.written_instants import BeforeEnd, iso_time
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import Workspace
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.runs.audit.findings_of import failing
from jobs.runs.replay.replayed import replayed
from reports.layout.nothing import nothing
from reports.layout.section import Section, raw_section
from reports.layout.worst_rows import summed_up, worst_rows
from reports.rebalances.rows import (
    CAUSE_HEADS,
    CHURN_HEADS,
    PEOPLES_HEADS,
    REBALANCE_HEADS,
    STANDING_HEADS,
    STORM_HEADS,
    section,
    with_causes,
)
from reports.row_formats import render
from schemas.evaluation_rules import RebalanceRules, rebalance_rules
from schemas.rebalance_causes import rebalance_causes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from jobs.cli.console import Console
    from jobs.runs.replay.replayed import Replayed

TABLES = {
    "rebalances": "epochs",
    "group_churn": "churn",
    "rebalance_storms": "storms",
    "stalled_members": "standing",
    "rebalance_causes": "causes",
}
"""What `--table` and JSON call them."""
_WORST: Final = {
    "rebalances": [("at", "descending")],
    "group_churn": [("per_hour", "descending")],
    "rebalance_storms": [("per_hour", "descending")],
    "stalled_members": [("since", "ascending")],
    "rebalance_causes": [("at", "descending")],
}
"""In which order they are where there are too many for people."""
NOT_RECORDED = "Whether a member timed out or left by itself is not recorded."


def rebalances_of_inputs(
    console: Console,
    output_format: str,
    *,
    time_from: int | BeforeEnd | None,
    time_to: int | BeforeEnd | None,
    storm_epochs: int | None = None,
    storm_minutes: float | None = None,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT or a side file is not what it has to be.
    """
    options_said = {"storm_epochs": storm_epochs, "storm_minutes": storm_minutes}
    with replayed(console, needs=NEEDS, **options) as state:
        rules = _rules(state, options_said)
        since, until = (resolved_time(each, state.manifest) for each in (time_from, time_to))
        answer = evaluate_rebalances(state, rules, since, until)
        report_groups(console, answer.groups)
        found = answer.tables
        if options.get("out") is not None:
            keep_evaluations(Workspace(options["out"]), found, state)
        said = {
            **state.response_metadata,
            "cannot_tell": list(answer.cannot_tell),
            "from": None if since is None else iso_time(since),
            "to": None if until is None else iso_time(until),
            "storm": {"epochs": rules.storm_epochs, "minutes": rules.storm_minutes},
            "not_recorded": NOT_RECORDED,
            "causes_said": dict(rebalance_causes()),
        }
        code = groups_exit_code(answer.groups) or state.exit_code or failing(console, state, found)
        return _answer(found, output_format, said, rules), code


def _rules(state: Replayed, options: Mapping[str, float | None]) -> RebalanceRules:
    """Return the rules: what an option says goes before `--config`."""
    said = {name: each for name, each in options.items() if each is not None}
    return rebalance_rules({**state.settings.given.thresholds("rebalances"), **said})


def _answer(
    found: Mapping[str, pa.Table],
    output_format: str,
    said: Mapping[str, Any],
    rules: RebalanceRules,
) -> str:
    epochs = found["rebalances"]
    if output_format in {"json", "csv"}:
        also = [name for name in epochs.column_names if name not in REBALANCE_HEADS]
        sections = [
            *(raw_section(found[name], TABLES[name]) for name in TABLES if name != "rebalances"),
            Section(epochs, REBALANCE_HEADS, also, name=TABLES["rebalances"]),
        ]
        return render(sections, output_format, said)
    if not epochs.num_rows:
        return nothing("No generation or group epoch in that time.", said)
    every = found
    found = {name: worst_rows(found[name], _WORST[name], output_format) for name in TABLES}
    found["rebalances"] = with_causes(found["rebalances"], _causes_of(found["rebalances"], every))
    parts = {
        "rebalance_storms": STORM_HEADS,
        "group_churn": CHURN_HEADS,
        "rebalances": PEOPLES_HEADS,
        "stalled_members": STANDING_HEADS,
        "rebalance_causes": CAUSE_HEADS,
    }
    # What led to an epoch stands in its line; the details where people ask for them.
    asked = getattr(output_format, "table", None)
    sections = [
        section(found[name], heads, TABLES[name])
        for name, heads in parts.items()
        if found[name].num_rows and (asked or name != "rebalance_causes")
    ]
    names = {each.name for each in sections}
    told = {
        said_as: (found[name].num_rows, every[name].num_rows)
        for name, said_as in TABLES.items()
        if said_as in names
    }
    notes = [*summed_up(told), *_notes(epochs, rules)]
    return "\n\n".join([render(sections, output_format, said), "\n".join(notes)])


def _causes_of(epochs: pa.Table, found: Mapping[str, pa.Table]) -> pa.Table:
    """Return what led to some epochs."""
    causes = found["rebalance_causes"]
    if epochs.num_rows == found["rebalances"].num_rows:
        return causes
    return causes.filter(pc.is_in(causes["group_id"], pc.unique(epochs["group_id"])))


def _notes(epochs: pa.Table, rules: RebalanceRules) -> list[str]:
    changes = set(epochs["coordinator_change"].to_pylist())
    return [
        f"storm: {rules.storm_epochs} epochs within {rules.storm_minutes:g} minutes",
        *(f"{word}: {text}" for word, text in rules.coordinator_changes.items() if word in changes),
        NOT_RECORDED,
    ]
