"""What `balance` does: judge the groups at an instant or through history, and say it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.balance.balance_tables import NEEDS, NEEDS_OF_HISTORY
from analytics.questions.balance.placement import Placement
from analytics.questions.balance.question import evaluate_balance, group_placement
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.runs.audit.findings_of import failing
from jobs.runs.replay.replayed import replayed
from reports.balance.rows import alternatives_section, balance_section
from reports.layout.nothing import nothing
from reports.layout.section import raw_section
from reports.layout.worst_rows import summed_up, worst_rows
from reports.quantities import ranges
from reports.row_formats import render
from schemas import CONSUMER_OFFSETS
from schemas.evaluation_rules import balance_rules, rebalance_rules

if TYPE_CHECKING:
    from jobs.cli.console import Console

MAKES = ("assignment_balance", "assignment_alternatives")


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
        rules = balance_rules(state.settings.given.thresholds("balance"))
        found = evaluate_balance(state, rules, through_history=through_history)
        report_groups(console, found.groups)
        if options.get("out") is not None:
            keep_evaluations(Workspace(options["out"]), found.tables, state)
        home_rules = rebalance_rules(state.settings.given.thresholds("rebalances"))
        places = group_placement(state, home_rules)
        _report_places(console, places)
        balance, alternatives = (found.tables[name] for name in MAKES)
        for each in found.doubts:
            console.error(f"cannot tell: {each}")
        said = {
            **state.response_metadata,
            "cannot_tell": list(found.cannot_tell),
            "verdicts": dict(rules.verdicts),
            "placement": asdict(places),
        }
        answer = _answer(balance, alternatives, output_format, said, with_times=through_history)
        code = (
            groups_exit_code(found.groups)
            or state.exit_code
            or (CANNOT_TELL if found.doubts else DONE)
        )
        code = code or failing(console, state, found.tables)
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


def _report_places(console: Console, places: Placement) -> None:
    for group, partition, home in places.misplaced:
        console.warn(
            f"{group} lies in {CONSUMER_OFFSETS}-{partition} but belongs to partition {home}: no "
            "broker finds it"
        )
    if places.overloaded:
        console.warn(
            f"{CONSUMER_OFFSETS} {ranges(places.overloaded)}: many more groups than in the others "
            f"(up to {places.most} of {places.groups})"
        )
