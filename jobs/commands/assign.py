"""`groupscope assign`: what an assignor gives a group, without a dump."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import BinaryIO

import click

from analytics.assignors import ASSIGNORS
from analytics.assignors.case import CaseError, read_case
from analytics.assignors.group import Assignment, AssignmentRefusedError, Group, Outcome, measure
from jobs.cli.console import print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.options.shared import format_options, output_options
from reports.layout.output_format import OutputFormat
from reports.plain_text import columns, hanging

_ALL = "--format json has all"
EPILOG = """
\b
Examples:
  groupscope assign examples/assign-case.json --assignor cooperative-sticky
  groupscope assign examples/assign-case.json --assignor server-uniform --format json
"""


@click.command(epilog=EPILOG)
@click.argument("case", metavar="CASE.json", type=click.File("rb"))
@click.option(
    "--assignor",
    type=click.Choice(list(ASSIGNORS)),
    help="Which assignor; by default the one that the case names. The first four run in "
    "clients, the others on the broker.",
)
@format_options("text", "json")
@output_options
def assign(case: BinaryIO, assignor: str | None, output_format: OutputFormat) -> int:
    """Run an assignor on a case.

    CASE.json names topics and the members that want them; "-" reads it from stdin. Try a change
    before it is made: members to come or go, partitions to add, another assignor.
    docs/assignors.md has the format. A case that the assignor refuses prints {"error": ...},
    with exit code 3.
    """
    try:
        given = read_case(case.read())
    except CaseError as error:
        raise click.UsageError(f"{case.name}: {error}") from None
    name = _chosen(assignor, given.assignor, case.name)
    try:
        assignment = ASSIGNORS[name](given.group)
    except AssignmentRefusedError as error:
        print_text(json.dumps({"error": str(error)}))
        return CANNOT_TELL
    if output_format == "json":
        print_text(json.dumps({"assignment": assignment}))
    else:
        print_text("\n".join(_lines(given.group, assignment, name, output_format.width)))
    return DONE


def _chosen(option: str | None, in_file: str | None, path: str) -> str:
    name = option or in_file
    if name is None:
        raise click.UsageError(f"{path} names no assignor: give --assignor")
    if name not in ASSIGNORS:
        known = ", ".join(ASSIGNORS)
        raise click.UsageError(f"{path}: unknown assignor {name!r}; use one of {known}")
    return name


def _lines(group: Group, assignment: Assignment, name: str, width: int) -> Iterator[str]:
    outcome = measure(group, assignment)
    rows = [
        (
            _printable_name(member),
            outcome.sizes[member],
            _partitions(assignment.get(member, {}).items()),
        )
        for member in sorted(each.id for each in group.members)
    ]
    yield from columns(("MEMBER", "#PARTITIONS", "ASSIGNMENT"), rows, width, _ALL)
    yield ""
    yield from hanging(_summary(outcome, name), width)
    if outcome.unread:
        why = "being handed over, assigned in the next rebalance"
        why = why if name == "cooperative-sticky" else "without an owner"
        yield from hanging(f"{why}: {_partitions(_grouped(outcome.unread))}", width)


def _summary(outcome: Outcome, name: str) -> str:
    sizes = outcome.sizes.values()
    smallest, largest = min(sizes, default=0), max(sizes, default=0)
    before = outcome.unmoved + outcome.moved
    return (
        f"{name}: {len(sizes)} members; partitions each: min {smallest}, max {largest}, "
        f"mean {outcome.mean:.2f}; kept {outcome.unmoved}, moved {outcome.moved} "
        f"of {before} owned before"
    )


def _grouped(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    return [
        (topic, [partition for _, partition in held])
        for topic, held in groupby(partitions, key=lambda pair: pair[0])
    ]


def _partitions(topics: Iterable[tuple[str, Sequence[int]]]) -> str:
    """Return topics with their partitions, runs as `first-last`: `orders: 0-3,7; returns: 1`."""
    shown = [f"{_printable_name(topic)}: {_runs(partitions)}" for topic, partitions in topics]
    return "; ".join(shown) or "-"


def _runs(partitions: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for partition in partitions:
        if runs and partition == runs[-1][1] + 1:
            runs[-1][1] = partition
        else:
            runs.append([partition, partition])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _printable_name(name: str) -> str:
    """Return a name fit for a terminal, whatever somebody put into it."""
    encoding = sys.stdout.encoding or "ascii"
    fit = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return fit.encode(encoding, "backslashreplace").decode(encoding)
