"""What `usage` does: read decoded records once, add them up, and say it; no Spark of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import Selection, names_wanted
from analytics.errors import CannotTellError, InputNotRecognizedError
from analytics.questions.usage.cleaning.log_settings import LogSettings
from analytics.questions.usage.groups.offset_deletions import OFFSETS_COLUMNS
from analytics.questions.usage.growth import (
    DiskOutlook,
    is_limited,
    not_in_both,
    outlooks,
    usage_growth,
)
from analytics.questions.usage.keys.summaries import summed
from analytics.replay.dump.written_instants import END
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import EVALUATIONS, Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.runs.audit.findings_of import failing
from jobs.runs.usage.answer import UsageAnswer, usage_answer
from jobs.runs.usage.tables import KnownState, usage_tables
from jobs.workspaces.replayed import replayed
from schemas.usage_rules import usage_rules

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.runs.usage.tables import Usage
    from jobs.workspaces.replayed import Replayed
    from reports.layout.output_format import OutputFormat

_EXPIRATION = "offset_expiration"
NOT_THEN = (
    "what the internal topics' files held before the end of the dump it does not say: compaction "
    "has taken records out of them since"
)
NEEDS = ("groups", "configs", "partition_leaders", "topics", "committed_offsets")


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        by: What records and bytes are added up by.
        commit_interval: Seconds between commits to compare with; None is the rules'.
        since: The workspace of an earlier dump.
        disk: Bytes that internal topics may take on a broker.
    """

    by: str
    commit_interval: float | None = None
    since: str | None = None
    disk: int | None = None


def usage_of(
    console: Console,
    wanted: Wanted,
    output_format: OutputFormat,
    *,
    out: str | None,
    groups: tuple[str, ...],
    exclude_groups: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        CannotTellError: An instant before the end of the dump is asked about.
        GroupscopeError: An INPUT or a file of settings is not what it has to be.
    """
    # Bytes come out even of all groups only: rows are chosen when all is known.
    if options.get("as_of") not in {None, END} or options.get("ends"):
        raise CannotTellError(NOT_THEN)
    with replayed(console, needs=NEEDS, out=out, **options) as state:
        if not state.is_end:
            raise CannotTellError(
                f"{state.tables.workspace.location} is as of {state.instant}, and {NOT_THEN}; "
                "--as-of end asks of the whole dump"
            )
        found = _found(state, wanted)
        growth, disks, unknown = _growth(wanted, state.manifest)
        limitations = [*found.limitations, *unknown]
        tables = {**found.tables, **({} if growth is None else {"usage_growth": growth})}
        if out is not None:
            keep_evaluations(Workspace(out), tables, state)
        for each in limitations:
            console.error(f"cannot tell: {each}")
        said = {
            **state.response_metadata,
            "cannot_tell": limitations,
            "file_bytes": found.even.file_bytes,
            "comes_out_even": found.even.holds,
            "offsets_partitions": found.placed.partitions,
            "offsets_partitions_that_fit": found.placed.fits,
            "cleaner_verdicts": dict(usage_rules().cleaner_verdicts),
            **({} if wanted.disk is None else {"disk": [asdict(each) for each in disks]}),
        }
        chosen = _of_groups(tables, Selection(groups, exclude_groups))
        code = state.exit_code or (CANNOT_TELL if limitations else DONE)
        code = code or failing(console, state, chosen)
    answer = UsageAnswer(
        chosen, summed(chosen["topic_usage"], wanted.by), wanted.by, found.even, found.placed
    )
    text = usage_answer(answer, output_format, said, disks, wanted.disk)
    return text, code


def _found(state: Replayed, wanted: Wanted) -> Usage:
    tables = state.tables
    known = KnownState(
        tables.read("groups"),
        tables.read("partition_leaders"),
        tables.read("topics"),
        tables.read("committed_offsets", OFFSETS_COLUMNS),
        _expiration(state),
    )
    interval = wanted.commit_interval
    return usage_tables(
        state.source,
        state.manifest,
        _settings(state),
        known,
        None if interval is None else round(interval * 1000),
    )


def _expiration(state: Replayed) -> pa.Table | None:
    """Return which offsets have expired, where that was evaluated of the same instant."""
    kept = state.manifest.get(EVALUATIONS, {}).get(_EXPIRATION)
    if kept is None or kept["as_of"] != state.as_of or not state.tables.has(_EXPIRATION):
        return None
    return state.tables.read(_EXPIRATION, ["group_id", "coordinator_partition", "status"])


def _settings(state: Replayed) -> LogSettings:
    given = state.settings.given
    return LogSettings.of(
        usage_rules(given.thresholds("usage")),
        state.tables.read("configs").to_pylist(),
        {each.node: each.values for each in state.settings.brokers},
        given.values,
    )


def _growth(
    wanted: Wanted, manifest: Mapping[str, Any]
) -> tuple[pa.Table | None, list[DiskOutlook], list[str]]:
    """Return how partitions grew since an earlier dump, and when they take all their room.

    The last are sentences about what cannot be told of that.

    Raises:
        InputNotRecognizedError: The earlier dump has no broker of this one, or is not earlier.
        WorkspaceError: It is no workspace.
    """
    if wanted.since is None:
        return None, [], []
    earlier = Workspace(wanted.since).manifest()
    clusters = [
        {each["cluster_id"] for each in one["copies"] if each["cluster_id"]}
        for one in (earlier, manifest)
    ]
    if all(clusters) and not clusters[0] & clusters[1]:
        raise InputNotRecognizedError(f"--since {wanted.since} is of another cluster")
    growth = usage_growth(earlier, manifest)
    if not growth.num_rows:
        names = ", ".join(str(each["name"]) for each in earlier["copies"])
        raise InputNotRecognizedError(
            f"--since {wanted.since} has no copy by a name of this dump's that ends earlier "
            f"(it has {names or 'none'}); NAME=PATH names a copy"
        )
    lacking = not_in_both(earlier, manifest)
    unknown = []
    if lacking:
        unknown = [f"how {', '.join(lacking)} grew: --since {wanted.since} has no copy of them"]
    limited = [
        name
        for name, each in ((f"--since {wanted.since}", earlier), ("this workspace", manifest))
        if is_limited(each)
    ]
    if limited:
        unknown += [
            f"how much partitions grew a day: {each} was made of some partitions only, which do "
            "not tell when its copies end"
            for each in limited
        ]
        return growth, [], unknown
    return growth, [] if wanted.disk is None else outlooks(growth, wanted.disk), unknown


def _of_groups(tables: Mapping[str, pa.Table], selection: Selection) -> dict[str, pa.Table]:
    """Return tables with the groups that are wanted, where they are about groups."""
    if not (selection.groups or selection.exclude_groups):
        return dict(tables)
    usage = tables["topic_usage"]
    there = [name for name in pc.unique(usage["group_id"]).to_pylist() if name is not None]
    names = names_wanted(there, selection.groups, selection.exclude_groups, there)
    wanted = pa.array(names, pa.string())
    return {
        name: rows.filter(pc.is_in(rows["group_id"], wanted))
        if "group_id" in rows.column_names
        else rows
        for name, rows in tables.items()
    }
