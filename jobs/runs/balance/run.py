"""What `balance` does: judge the groups at an instant or through history, and say it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.balance.placement import Placement, placement
from analytics.library.evaluations.balance_tables import (
    NEEDS,
    NEEDS_OF_HISTORY,
    tables_ever,
    tables_now,
)
from analytics.library.evaluations.held_in_epochs import held_in_epochs
from analytics.library.limits.group_completeness import GroupCompleteness
from analytics.library.limits.group_selection import AskedGroups, asked_groups
from analytics.library.replayed.kept_evaluations import keep_evaluations
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from jobs.cli.incomplete_groups import report_groups
from jobs.runs.audit.findings_of import failing
from jobs.runs.replay.replayed import replayed
from reports.balance.rows import alternatives_section, balance_section
from reports.layout.nothing import nothing
from reports.layout.section import raw_section
from reports.layout.worst_rows import summed_up, worst_rows
from reports.quantities import ranges
from reports.row_formats import render
from schemas.evaluation_rules import balance_rules, rebalance_rules

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.runs.replay.replayed import Replayed

CANNOT_TELL = 3
MAKES = ("assignment_balance", "assignment_alternatives")
_OFFSETS_TOPIC = "__consumer_offsets"


def balance_inputs(
    console: Console,
    output_format: str,
    *,
    through_history: bool,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT or a side file is not what it has to be.
    """
    needs = NEEDS_OF_HISTORY if through_history else NEEDS
    with replayed(console, needs=needs, **options) as state:
        asked = asked_groups(state, with_offsets=False)
        report_groups(console, asked)
        rules = balance_rules(state.settings.given.thresholds("balance"))
        gaps = _gaps(state, asked, through_history=through_history)
        if through_history:
            found = tables_ever(state, held_in_epochs(state), rules, gaps)
        else:
            found = tables_now(state, rules, gaps)
        if options.get("out") is not None:
            keep_evaluations(Workspace(options["out"]), found, state)
        places = _placement(state)
        _tell_places(console, places)
        balance, alternatives = (found[name] for name in MAKES)
        untold = [each for each in _untold(balance) if each not in asked.cannot_tell]
        for each in untold:
            console.error(f"cannot tell: {each}")
        said = {
            **state.said,
            "cannot_tell": [*asked.cannot_tell, *untold],
            "verdicts": dict(rules.verdicts),
            "placement": asdict(places),
        }
        answer = _answer(balance, alternatives, output_format, said, with_times=through_history)
        code = asked.exit_code or state.exit_code or (CANNOT_TELL if untold else 0)
        code = code or failing(console, state, found)
    return answer, code


def _answer(
    balance: pa.Table,
    alternatives: pa.Table,
    output_format: str,
    said: dict[str, Any],
    *,
    with_times: bool,
) -> str:
    if output_format in {"json", "csv"}:
        section = balance_section(balance, for_people=False, with_times=with_times)
        return render([section, raw_section(alternatives, "alternatives")], output_format, said)
    worst, tried = _worst(balance, alternatives, list(said["verdicts"]), output_format)
    sections = [balance_section(worst, for_people=True, with_times=with_times)]
    if tried.num_rows:
        sections.append(alternatives_section(tried))
    verdicts = set(balance["verdict"].to_pylist())
    meanings = [
        f"{word.replace('_', ' ')}: {text}"
        for word, text in said["verdicts"].items()
        if word in verdicts
    ]
    notes = [*_left_out(worst, balance), *meanings, _definition()]
    if not balance.num_rows:
        return nothing("No group has members.", said)
    return "\n\n".join([render(sections, output_format, said), "\n".join(notes)])


def _worst(
    balance: pa.Table, alternatives: pa.Table, verdicts: list[str], output_format: str
) -> tuple[pa.Table, pa.Table]:
    """Return the worst of too many rows, and what other assignors would make of these groups."""
    rank = pc.index_in(balance["verdict"], pa.array(verdicts))
    order = [("rank", "ascending"), ("score", "ascending"), ("group_id", "ascending")]
    found = worst_rows(balance.append_column("rank", rank), order, output_format)
    if found.num_rows == balance.num_rows:
        return balance, alternatives
    of_them = pc.is_in(alternatives["group_id"], pc.unique(found["group_id"]))
    return found.drop_columns("rank"), alternatives.filter(of_them)


def _left_out(worst: pa.Table, balance: pa.Table) -> list[str]:
    """Return how many rows there are and of which verdicts, where not all are shown."""
    lines = summed_up({"rows": (worst.num_rows, balance.num_rows)})
    if lines:
        counts = pc.value_counts(balance["verdict"]).to_pylist()
        told = (f"{each['counts']:,} {each['values'].replace('_', ' ')}" for each in counts)
        lines.append(f"verdicts: {', '.join(told)}")
    return lines


def _definition() -> str:
    return (
        "score: 100 where no partition has to move for an even spread and none lacks an owner; 0 "
        "where one member has all, or nobody any"
    )


def _untold(balance: pa.Table) -> list[str]:
    """Return what cannot be told of groups, each once."""
    rows = balance.filter(pc.equal(balance["verdict"], "cannot_tell"))
    told = {
        f"{row['group_id']}: {row['cause'] or row['verdict']}": None for row in rows.to_pylist()
    }
    return list(told)


def _gaps(state: Replayed, asked: AskedGroups, *, through_history: bool) -> dict[str, str]:
    """Return the groups of which the dump lacks records that may matter, with why."""
    untold = GroupCompleteness(state)
    found: dict[str, str] = {}
    for group in asked.found["group_id"].to_pylist():
        gaps = untold.gaps_of(group)
        why = gaps.membership or (gaps.history if through_history else None)
        if why is not None:
            found[group] = why.removeprefix(f"{group}: ")
    return found


def _placement(state: Replayed) -> Placement:
    """Verify the place of every group that is there, whichever were asked for."""
    everything = StoredTables(state.tables.workspace)
    topics = everything.read("topics", ["partitions"], pc.field("topic") == _OFFSETS_TOPIC)
    counts = [each for each in topics["partitions"].to_pylist() if each]
    groups = everything.read("groups", ["group_id", "coordinator_partition"]).to_pylist()
    places = [(each["group_id"], each["coordinator_partition"]) for each in groups]
    present = {
        each["partition"]
        for each in state.manifest["partitions"]
        if each["topic"] == _OFFSETS_TOPIC
    }
    rules = rebalance_rules(state.settings.given.thresholds("rebalances"))
    return placement(places, max(counts, default=None), rules, len(present))


def _tell_places(console: Console, places: Placement) -> None:
    for group, partition, home in places.misplaced:
        console.warn(
            f"{group} lies in {_OFFSETS_TOPIC}-{partition} but belongs to partition {home}: no "
            "broker finds it"
        )
    if places.overloaded:
        console.warn(
            f"{_OFFSETS_TOPIC} {ranges(places.overloaded)}: many more groups than in the others "
            f"(up to {places.most} of {places.groups})"
        )
