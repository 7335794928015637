"""Runs of audits in workspaces, as `trend` compares them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from analytics.errors import AbsentFileError, CannotTellError, WorkspaceError
from analytics.gaps.internal_topics import filters_of
from analytics.library.saved_runs import lacking, whole_partitions
from analytics.locations import join
from analytics.questions.trend.runs import AuditedRun
from analytics.redaction.redactor import WITHHELD
from analytics.replay.log.ends_at import cleaned_until, leading
from analytics.replayed.replayed_workspace import ReplayedWorkspace
from analytics.side_files import read_bytes
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import SUMMARY, Workspace
from schemas import CONSUMER_OFFSETS
from schemas.manifest import cluster_ids

if TYPE_CHECKING:
    from schemas.manifest import Manifest

DATA_LOGS: Final = "logs of data topics"
SNAPSHOTS: Final = "what the cluster answered to snapshot"


def audited_run(location: str, cluster: str | None = None) -> AuditedRun:
    """Return the run in a workspace.

    Args:
        location: The workspace.
        cluster: Of which cluster it is where its dump does not say so.

    Raises:
        InputNotRecognizedError: There is no such folder.
        WorkspaceError: It is no workspace, of another version, or damaged.
        CannotTellError: No audit came to its end in it.
    """
    Workspace(location).manifest()
    return run_in(location, audit_summary(location), cluster)


def run_in(location: str, summary: Mapping[str, Any], cluster: str | None = None) -> AuditedRun:
    """Return the run of an audit whose tables are there, with what its summary is to say.

    Args:
        location: The workspace.
        summary: What `summary.json` says.
        cluster: Of which cluster it is where its dump does not say so.

    Raises:
        WorkspaceError: It is no workspace, of another version, or damaged.
    """
    space = Workspace(location)
    manifest = space.manifest()
    state = ReplayedWorkspace(StoredTables(space), space, manifest)
    lacks = lacking(state.manifest)
    time = summary["as_of"]["time"]
    return AuditedRun(
        name=location,
        cluster=", ".join(cluster_ids(manifest["copies"])) or cluster,
        as_of=None if time is None else datetime.fromisoformat(time),
        tables=StoredTables(space),
        logs=_logs(state.manifest),
        lacks=frozenset(f"{each['topic']}-{each['partition']}" for each in lacks),
        filters=_filters(manifest, summary, location),
        whole_partitions=_numbers(whole_partitions(state)),
        shows_history=not lacks and _shows_history(state.manifest),
        is_redacted=bool(manifest.get("redacted")),
        settings=summary.get("settings"),
        snapshot_copies=frozenset(each["copy"] for each in manifest.get("snapshots", ())),
        keeps_cleaned=any(each.get("resumed_from") for each in manifest.get("snapshots", ())),
        nodes={
            each["name"]: node
            for each in manifest["copies"]
            if (node := each.get("node_id")) is not None
        },
    )


def filters_in(filters: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    """Return filters as `saved_runs` has them: `groups=parcel-*`."""
    return tuple(f"{option}={each}" for option in sorted(filters) for each in filters[option])


def _filters(manifest: Manifest, summary: Mapping[str, Any], location: str) -> tuple[str, ...]:
    """Return by which filters the workspace was made, and the audit asked."""
    asked = (alone(each, location) for each in summary.get("filters", ()))
    return tuple(dict.fromkeys((*filters_in(filters_of(manifest)), *asked)))


def alone(text: str, run: str) -> str:
    """Return a filter; one that is withheld is like no other run's."""
    return f"{text} of {run}" if text.endswith(f"={WITHHELD}") else text


def _numbers(partitions: Iterable[int] | None) -> frozenset[int] | None:
    return None if partitions is None else frozenset(partitions)


def _logs(manifest: Manifest) -> frozenset[str]:
    """Return what a dump has that answers rest on."""
    logs = {f"{each['topic']}-{each['partition']}" for each in leading(manifest)}
    if manifest.get("data_partitions"):
        logs.add(DATA_LOGS)
    if manifest.get("snapshots"):
        logs.add(SNAPSHOTS)
    return frozenset(logs)


def _shows_history(manifest: Manifest) -> bool:
    """Return whether every record ever written to the offsets topic is there."""
    rows = [each for each in leading(manifest) if each["topic"] == CONSUMER_OFFSETS]
    return bool(rows) and all(
        each.get("complete_from") == 0 and not cleaned_until(each) for each in rows
    )


def audit_summary(location: str) -> Mapping[str, Any]:
    """Return what an audit that came to its end says of itself: it writes that last.

    Raises:
        AbsentFileError: There is no such folder.
        WorkspaceError: The file is damaged.
        GroupscopeError: It cannot be read.
        CannotTellError: There is none.
    """
    path = join(location, SUMMARY)
    try:
        found: Mapping[str, Any] = json.loads(read_bytes(path))
    except AbsentFileError as error:
        if not Workspace(location).is_there:
            raise AbsentFileError(f"{location}: there is no such folder") from error
        raise not_audited(location) from error
    except ValueError as error:
        raise WorkspaceError(f"{path} cannot be read: {error}") from error
    return found


def not_audited(location: str) -> CannotTellError:
    """Return what is said of a workspace in which no audit came to its end."""
    word = shlex.quote(location)
    return CannotTellError(
        f"{location} was not audited to the end: run groupscope audit {word} --out {word} first"
    )
