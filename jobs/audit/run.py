"""What `audit` does: every question once, rules applied to the answers, findings kept and said."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.decode.selection import Selection
from analytics.engine.part_runs import PartRunner, one_ahead, release_freed_memory
from analytics.errors import CannotTellError
from analytics.gaps.gap import TABLE as GAPS
from analytics.gaps.gap import Gap, gap_rows
from analytics.gaps.uncertain_metadata import uncertain_metadata
from analytics.library.audited_runs import audit_summary, filters_in
from analytics.library.saved_runs import plain_settings, settings_digest
from analytics.locations import join
from analytics.questions.data_quality.data_docs import Validation
from analytics.questions.data_quality.question import (
    DATA_QUALITY,
    QualitySettings,
    team_suites,
)
from analytics.questions.findings.configured_rules import configured_rules
from analytics.questions.findings.findings_of import (
    findings_of,
    input_words,
    kept_tables,
    severities_from,
)
from analytics.questions.findings.found import changes_in_parts
from analytics.questions.findings.rows_for_rules import judged_tables
from analytics.questions.question import audited_questions
from analytics.questions.table_orders import order_of
from analytics.questions.timeline.question import TIMELINE, TimelineSettings
from analytics.questions.timeline.words import OFFSET_VERDICTS
from analytics.redaction.redactor import WITHHELD
from analytics.replayed.end_offsets import read_end_offsets
from analytics.replayed.replayed_workspace import (
    AUDIT,
    forget_evaluations,
    instant_of,
    keep_evaluations,
)
from analytics.tables.parted_table import PartedTable, PartedTables
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import LINES, PAGE, SUMMARY, Workspace
from jobs.asking import PHRASING, answer_exit_code, report_answer
from jobs.audit.data_docs import earlier_pages, write_data_docs
from jobs.audit.disks import DISKS, disks_of, run_before
from jobs.audit.hook import run_hook
from jobs.audit.page import page_of_workspace
from jobs.cli.console import HeldConsole, command_line, print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE, SEVERE_FINDING
from jobs.cli.written_text import write_pieces, write_text
from jobs.spark.session import one_session
from jobs.workspaces.kept_replay import of_folder, replay_into_folder
from jobs.workspaces.redacted_workspace import key_in, redact_into
from jobs.workspaces.replayed import replayed
from jobs.workspaces.saved import OF_AUDIT, saving_of
from reports.findings import AuditFindings, answer_of, json_lines, summary_of
from reports.metrics import MEASURED, Audited, metrics_of
from reports.page.forms import html_of
from reports.verdict import incidents_in
from schemas.manifest import cluster_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.library.saved_runs import Run
    from analytics.questions.findings.findings_in_parts import FindingCounts
    from analytics.questions.question import Question
    from analytics.questions.trend.runs import AuditedRun
    from analytics.redaction.redactor import Redactor
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed
    from jobs.workspaces.saved import Saving

_UNNAMED_DUMP = {"input": "DUMP", "dump": "DUMP"}
"""A path may hold names: a report without names has none."""
UNNAMED_COMMAND: Final = "groupscope audit DUMP --out DIR --redact KEYFILE"
"""So may an option."""
NEEDS = (
    *("groups", "members", "topics", "partition_leaders", "assignments", "configs"),
    *("committed_offsets", "pending_offsets", "coordinator_epochs", "offset_history"),
    *("group_events", "divergences", "load_faults", "share_partitions", "share_batches"),
    *("group_epochs", "membership_changes", "assignment_history", "share_partition_epochs"),
)


@dataclass(frozen=True)
class AuditOptions:
    """The options of the command.

    Attributes:
        out: The folder of the workspace.
        fail_on: The severity from which on the code is 1, or `never`.
        since: The workspace of an earlier audit.
        end_offsets: A file.
        metrics: Where metrics are written.
        on_findings: A command that is told what was found.
        redact: A file with the key of pseudonyms; None leaves names as they are.
        expectations: A folder with suites of a team's own.
        data_docs: Where Data Docs of great-expectations are written; None is nowhere.
        retention_minutes: Retentions that are tried.
        save_tables: The schema of a catalog that tables are saved to, too.
        save_format: What tables that are not there yet are made as.
        cluster: What saved tables call the cluster; None is its id.
        disk_size: Bytes of the disk of each broker; None where nobody said.
    """

    out: str
    fail_on: str
    since: str | None
    end_offsets: str | None
    metrics: str | None = None
    on_findings: str | None = None
    redact: str | None = None
    expectations: str | None = None
    data_docs: str | None = None
    retention_minutes: tuple[int, ...] = ()
    save_tables: str | None = None
    save_format: str = "parquet"
    cluster: str | None = None
    disk_size: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What of them tables are made by; that of an earlier audit, nothing but comparison is."""
        made_by = ("retention_minutes", "end_offsets", "expectations", "redact")
        return {name: getattr(self, name) for name in made_by}


@one_session()
def audit_of(
    console: Console,
    audit_options: AuditOptions,
    output_format: str,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> int:
    """Print the answer, and return the exit code.

    Raises:
        GroupscopeError: An INPUT, a side file or the folder is not what it has to be.
    """
    # What is wrong with a file is said before anything is done.
    team_suites(audit_options.expectations)
    if audit_options.end_offsets is not None:
        read_end_offsets(audit_options.end_offsets)
    if audit_options.data_docs is not None:
        earlier_pages(audit_options.data_docs)
    saving = saving_of(
        console,
        save_tables=audit_options.save_tables,
        save_format=audit_options.save_format,
        cluster=audit_options.cluster,
        options=options,
    )
    if saving is not None:
        saving.check()
    is_disk_asked = audit_options.disk_size is not None and audit_options.since is not None
    run = run_before(str(audit_options.since)) if is_disk_asked else None
    with _earlier(audit_options.since) as before:
        asking = _Asking(console, audit_options, before, output_format, saving, run)
        if audit_options.redact is None:
            asked_of = input_words(options["inputs"], options)
            with _audited(console, audit_options, options, saving) as asked:
                return _answered(asking, asked, asked_of)
        key = key_in(audit_options.redact)
        # Names never reach the folder, nor what is said meanwhile.
        held = HeldConsole(console.quiet, console.verbose, console.progress)
        with tempfile.TemporaryDirectory(prefix="groupscope-") as parts:
            with (
                tempfile.TemporaryDirectory(prefix="groupscope-") as folder,
                _audited(held, replace(audit_options, out=folder), options, saving) as asked,
            ):
                unnamed = _redacted(audit_options, asked, key, _paths_of(options), parts)
            if unnamed.redactor is not None:
                held.release(console, unnamed.redactor.text.replaced)
            return _answered(asking, unnamed, _UNNAMED_DUMP)


def _paths_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths that are named meanwhile."""
    earlier = options.get("resume")
    return (*options["inputs"], *(() if earlier is None else (earlier,)))


@dataclass(frozen=True)
class _Asking:
    """Who asks, and what is said to them.

    Attributes:
        console: Where it is told how far it is.
        options: Of the audit.
        before: The findings of an earlier audit; None where there is none to compare with.
        output_format: Of the answer.
        saving: Where tables are saved to, too; None is nowhere.
        run_before: The run of the earlier audit, where the sizes of disks are known, too.
    """

    console: Console
    options: AuditOptions
    before: PartedTable | None
    output_format: str
    saving: Saving | None
    run_before: AuditedRun | None = None


@dataclass(frozen=True)
class _Audited:
    """A workspace in which all questions were answered.

    Attributes:
        state: The workspace.
        answers: What rules are applied to beside what the workspace holds, by name.
        failed: By question why it could not be asked.
        is_open: Whether a question was not answered, or not wholly.
        redactor: What took the names out; None where they are there.
        run: What tables are saved of; None where they are not.
        filters: Which groups and topics were asked about, as `groups=parcel-*`.
    """

    state: Replayed
    answers: Mapping[str, PartedTable]
    failed: Mapping[str, str]
    is_open: bool
    redactor: Redactor | None = None
    run: Run | None = None
    filters: tuple[str, ...] = ()


@contextmanager
def _audited(
    console: Console,
    audit_options: AuditOptions,
    options: Mapping[str, Any],
    saving: Saving | None,
) -> Iterator[_Audited]:
    """Replay into the folder and answer every question there."""
    _, code = replay_into_folder(console, audit_options.out, needs=NEEDS, options=options)
    space = Workspace(audit_options.out)
    # What a question has no answer to now shall not be what it had one to before.
    forget_evaluations(space)
    own = of_folder(audit_options.out, options)
    quiet = replace(console, quiet=True)
    with replayed(quiet, needs=NEEDS, out=audit_options.out, **own) as found:
        state = replace(found, exit_code=found.exit_code or code)
        # What cannot be saved is said before all questions are asked.
        run = None if saving is None else _run(saving, audit_options, state)
        failed, gaps, is_open = _ask(console, audit_options, state, own)
        # Whoever reads events, as the page does, reads those of the workspace, group by group.
        settings = TimelineSettings(end_offsets=audit_options.end_offsets, with_events=False)
        timeline = TIMELINE.ask(state, settings)
        verdicts = timeline.rows(OFFSET_VERDICTS)
        is_open |= bool(timeline.doubts)
        keep_evaluations(
            space, {GAPS: gap_rows({**gaps, TIMELINE.name: timeline.gaps})}, state, AUDIT
        )
        state = replace(state, manifest=space.manifest())
        console.say("audit: data quality")
        # Names in examples are written as JSON has it, and would not be known.
        of_quality = QualitySettings(
            audit_options.expectations,
            with_examples=audit_options.redact is None,
            for_data_docs=audit_options.data_docs is not None,
        )
        quality = DATA_QUALITY.ask(state, of_quality)
        checked = {name: quality.rows(name) for name in quality.tables}
        answers = {OFFSET_VERDICTS: verdicts, **checked}
        filters = filters_in(Selection.of_options(options).options)
        yield _Audited(state, answers, failed, is_open, run=run, filters=filters)


def _redacted(
    audit_options: AuditOptions,
    audited: _Audited,
    key: bytes,
    inputs: tuple[str, ...],
    parts: str,
) -> _Audited:
    """Return the same without names, in the folder that is kept; its answers in one for `parts`."""
    state = audited.state
    redactor, manifest = redact_into(audit_options.out, state.tables.workspace, key, inputs)
    space = Workspace(audit_options.out)
    return _Audited(
        replace(
            state,
            tables=StoredTables(space),
            source=space,
            manifest=manifest,
            inputs=(WITHHELD,),
            # The folder for parts with names goes with that of the names.
            runner=PartRunner(parts),
        ),
        {
            name: redactor.parted(name, rows, f"{parts}/{name}")
            for name, rows in audited.answers.items()
        },
        {name: redactor.text.replaced(why) for name, why in audited.failed.items()},
        audited.is_open,
        redactor,
        None if audited.run is None else _without_names(audited.run, redactor),
        tuple(f"{each.partition('=')[0]}={WITHHELD}" for each in audited.filters),
    )


def _answered(asking: _Asking, audited: _Audited, asked_of: Mapping[str, str]) -> int:
    """Apply the rules, keep and write what they find, tell others, and print it."""
    console, audit_options, before = asking.console, asking.options, asking.before
    state = audited.state
    judged = {**judged_tables(state), **audited.answers}
    found = findings_of(state, judged, asked_of, PHRASING, audited.redactor)
    code = _exit_code(audited, found.counts, audit_options.fail_on)
    said = {
        **state.response_metadata,
        "could_not_be_asked": audited.failed,
        "filters": audited.filters,
        "settings": settings_digest(
            plain_settings({**audit_options.settings, "given": state.settings})
        ),
    }
    changes = None if before is None else changes_in_parts(found.findings, before, state.runner)
    outcome = AuditFindings(
        found.findings,
        found.counts,
        found.accepted,
        incidents_in(*found.incidents),
        changes,
        audited.is_open or audited.state.exit_code == CANNOT_TELL,
    )
    summary = summary_of(
        outcome,
        said,
        code,
        audit_options.fail_on,
        UNNAMED_COMMAND if audited.redactor is not None else command_line(),
    )
    release_freed_memory()
    kept = kept_tables(state, judged.keys(), found, changes)
    folder = audit_options.out
    keep_evaluations(Workspace(folder), PartedTables({**kept, **audited.answers}), state, AUDIT)
    if audit_options.disk_size is not None:
        disks = disks_of(folder, summary, asking.run_before, audit_options.disk_size)
        keep_evaluations(Workspace(folder), {DISKS: disks}, state, AUDIT)
    write_pieces(join(folder, LINES), json_lines(one_ahead(found.findings.pieces())))
    summary_text = _as_json(summary)
    # The page is of what is kept: `report` makes the same of it.
    shown = page_of_workspace(folder, json.loads(summary_text))
    page = write_text(join(folder, PAGE), html_of(shown))
    # The last: where it is missing, no audit came to its end.
    summary_file = write_text(join(folder, SUMMARY), summary_text)
    console.say(f"audit: {page}")
    if asking.saving is not None and audited.run is not None:
        asking.saving.save(Workspace(audit_options.out), audited.run, OF_AUDIT)
    if audit_options.metrics is not None:
        write_pieces(
            audit_options.metrics, _metrics(state, audit_options.cluster, found.counts, code)
        )
    if audit_options.data_docs is not None:
        console.say(f"audit: {_data_docs(audit_options, audited, asked_of['dump'])}")
    if audit_options.on_findings is not None and found.counts:
        run_hook(console, audit_options.on_findings, summary_file, summary_text)
    # What is printed is read as long as its parts are there.
    print_text(answer_of(outcome, asking.output_format, {**said, "summary": summary}))
    return code


def _data_docs(options: AuditOptions, audited: _Audited, dump: str) -> str:
    """Write Data Docs and return where they begin; arguments of a team's may have names in them."""
    suites = team_suites(options.expectations) if audited.redactor is None else {}
    validation = Validation(dump, datetime.now(UTC))
    rows = audited.answers[DATA_QUALITY.name]
    return write_data_docs(str(options.data_docs), rows, suites, validation)


def _run(saving: Saving, options: AuditOptions, state: Replayed) -> Run:
    settings = {**options.settings, "given": state.settings}
    return saving.run(state, AUDIT, settings, is_redacted=options.redact is not None)


def _without_names(run: Run, redactor: Redactor) -> Run:
    lacks = [{**each, "words": redactor.text.replaced(each["words"])} for each in run.row["lacks"]]
    return replace(run, row={**run.row, "lacks": lacks})


def _exit_code(audited: _Audited, counts: FindingCounts, fail_on: str) -> int:
    # A finding that somebody waits for is not hidden by what cannot be told of something else.
    wanted = severities_from(fail_on)
    is_severe = any(severity in wanted for _, severity in counts)
    code = audited.state.exit_code or (SEVERE_FINDING if is_severe else DONE)
    return code or (CANNOT_TELL if audited.is_open else DONE)


def _ask(
    console: Console, audit_options: AuditOptions, state: Replayed, options: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, tuple[Gap, ...]], bool]:
    """Answer every question of the registry into the workspace.

    Args:
        console: Where it is told what is asked.
        audit_options: Of the audit.
        state: The workspace.
        options: Of `replayed`.

    Returns:
        What could not be asked, and why; by question what it could not tell; and whether either is
        anything, or a row of an answer cannot be told.
    """
    failed: dict[str, str] = {}
    gaps: dict[str, tuple[Gap, ...]] = {}
    is_open = False
    quiet = replace(console, quiet=True)
    space = state.tables.workspace
    given = {
        "retention_minutes": audit_options.retention_minutes,
        "end_offsets": audit_options.end_offsets,
        "kafka_version": options.get("kafka_version"),
    }
    for question in audited_questions():
        console.say(f"audit: {question.name}")
        try:
            answered = _keep_answer(quiet, question, given, state)
        except CannotTellError as error:
            failed[question.name] = str(error)
            console.error(f"{question.name}: {error}")
            continue
        # What a question leaves would lie below all that the next ones take.
        release_freed_memory()
        gaps[question.name] = answered.gaps
        is_open |= answered.is_open
        # A later question may rest on this one.
        state = replace(state, manifest=space.manifest())
    return failed, gaps, is_open or bool(failed)


class _WhatIsOpen(NamedTuple):
    """What an answer, whose tables are in the workspace, leaves open.

    Attributes:
        gaps: What cannot be told.
        is_open: Whether something cannot: that, or what rows say of themselves.
    """

    gaps: tuple[Gap, ...]
    is_open: bool


def _keep_answer(
    console: Console, question: Question[Any, Any], settings: Mapping[str, Any], state: Replayed
) -> _WhatIsOpen:
    """Answer a question into the workspace, and return what it cannot tell.

    The answer is let go before the next question is asked: each may be large.
    """
    chosen = question.settings_from(settings)
    answer = question.ask(state, chosen)
    report_answer(console, answer)
    keep_evaluations(state.tables.workspace, answer.tables_to_keep, state, AUDIT)
    uncertain = uncertain_metadata(state, question.needs_of(chosen))
    is_open = answer_exit_code(state, answer) == CANNOT_TELL
    return _WhatIsOpen((*answer.gaps, *state.left_out, *uncertain), is_open)


def _metrics(
    state: Replayed, cluster: str | None, findings: FindingCounts, code: int
) -> Iterator[str]:
    stored = state.tables
    tables = {name: partial(stored.pieces, name) for name in MEASURED if stored.has(name)}
    rules = configured_rules(state.settings.from_file.findings)
    name = ",".join(cluster_ids(state.manifest["copies"])) if cluster is None else cluster
    ended = datetime.now(UTC)
    return metrics_of(Audited(name, rules, findings, tables, instant_of(state), ended, code))


@contextmanager
def _earlier(workspace: str | None) -> Iterator[PartedTable | None]:
    """Hand over the findings of an earlier audit: a copy, as the new one may take its folder.

    Raises:
        CannotTellError: It did not come to its end.
        WorkspaceError: It cannot be read.
    """
    if workspace is None:
        yield None
        return
    audit_summary(workspace)
    name = "findings"
    found = StoredTables(Workspace(workspace)).parted(name, order_of(name))
    with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
        yield found.copied(folder)


def _as_json(summary: Mapping[str, Any]) -> str:
    return json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
