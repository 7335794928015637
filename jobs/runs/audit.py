"""What `audit` does: every question once, rules applied to the answers, findings kept and said."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.errors import CannotTellError
from analytics.evaluate.findings.changes import with_changes
from analytics.workspace import Workspace
from jobs.cli.answered_instant import instant_of
from jobs.replayed import replayed
from jobs.runs.audit_config import configured_rules
from jobs.runs.audit_hook import run_hook
from jobs.runs.audit_kept import kept_tables
from jobs.runs.audit_tables import audited_tables, questions
from jobs.runs.findings_of import exit_code_of, findings_of
from jobs.runs.kept_evaluations import keep_evaluations
from jobs.runs.page import remove_page, write_page
from jobs.stored_tables import StoredTables
from reports.audit.metrics import MEASURED, Audited, metrics_of
from reports.audit.rows import answer_of, json_lines
from reports.audit.summary import summary_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from jobs.console import Console
    from jobs.replayed import Replayed

SUMMARY, LINES = "summary.json", "findings.jsonl"
NEEDS = (
    *("groups", "members", "topics", "partition_leaders", "assignments", "configs"),
    *("committed_offsets", "pending_offsets", "coordinator_epochs", "offset_history"),
    *("group_events", "divergences", "load_faults", "share_partitions", "share_batches"),
    *("group_epochs", "membership_changes", "assignment_history", "share_partition_epochs"),
)


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        out: The folder of the workspace.
        fail_on: The severity from which on the code is 1, or `never`.
        since: The workspace of an earlier audit.
        end_offsets: A file.
        metrics: Where metrics are written.
        on_findings: A command that is told what was found.
    """

    out: str
    fail_on: str
    since: str | None
    end_offsets: str | None
    metrics: str | None = None
    on_findings: str | None = None


def audit_of(
    console: Console,
    wanted: Wanted,
    output_format: str,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT, a side file or the folder is not what it has to be.
    """
    before = None if wanted.since is None else _earlier(wanted.since)
    with replayed(console, needs=NEEDS, out=wanted.out, **options):
        # What an earlier audit said is not what this one finds, should it be interrupted.
        for name in (SUMMARY, LINES):
            (Path(wanted.out) / name).unlink(missing_ok=True)
        remove_page(wanted.out)
    failed = _ask(console, wanted, options)
    own = {**options, "inputs": (wanted.out,), "as_of": None, "ends": {}}
    with replayed(replace(console, quiet=True), needs=NEEDS, out=wanted.out, **own) as state:
        tables = audited_tables(state, wanted.end_offsets)
        left, accepted = found = findings_of(state, tables)
        code = state.exit_code or exit_code_of(left, wanted.fail_on)
        said = {**state.said, "could_not_be_asked": failed}
        summary = summary_of(left, accepted, said, code, wanted.fail_on)
        kept = kept_tables(state, tables, found, before)
        keep_evaluations(Workspace(wanted.out), kept, state)
        metrics = _metrics(state, left, code) if wanted.metrics is not None else None
    _write(Path(wanted.out), {SUMMARY: _as_json(summary), LINES: json_lines(left)})
    console.say(f"audit: {write_page(wanted.out)}")
    if wanted.metrics is not None and metrics is not None:
        _write(Path(wanted.metrics).parent, {Path(wanted.metrics).name: metrics})
    if wanted.on_findings is not None and left.num_rows:
        run_hook(console, wanted.on_findings, Path(wanted.out) / SUMMARY)
    shown = left if before is None else with_changes(left, before)
    return answer_of(shown, accepted, output_format, {**said, "summary": summary}), code


def _ask(console: Console, wanted: Wanted, options: Mapping[str, Any]) -> dict[str, str]:
    """Answer every question into the workspace; return what could not be asked, and why."""
    failed = {}
    quiet = replace(console, quiet=True)
    for name, ask in questions(wanted, options).items():
        console.say(f"audit: {name}")
        try:
            ask(quiet)
        except CannotTellError as error:
            failed[name] = str(error)
            console.error(f"{name}: {error}")
    return failed


def _metrics(state: Replayed, found: pa.Table, code: int) -> str:
    tables = {name: state.tables.read(name) for name in MEASURED if state.tables.has(name)}
    rules = configured_rules(state.settings.given.findings)
    return metrics_of(Audited(rules, found, tables, instant_of(state), datetime.now(UTC), code))


def _earlier(workspace: str) -> pa.Table:
    return StoredTables(Workspace(workspace)).read("findings")


def _as_json(summary: Mapping[str, Any]) -> str:
    return json.dumps(summary, indent=1, ensure_ascii=False) + "\n"


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        staged = folder / f"{name}.part"
        staged.write_text(text, encoding="utf-8", errors="surrogatepass")
        staged.replace(folder / name)
