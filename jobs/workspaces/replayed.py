"""What an asking command works on: a workspace whose tables say how things were at an instant.

A workspace that was replayed at that instant already is used as it is, without Spark. All else is
replayed first, into `--out` or a temporary workspace.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from analytics.cluster_probe import ListedFile, check_executors
from analytics.decode.selection import OF_NAMES, Selection
from analytics.decode.workload import is_small_workspace
from analytics.dump.files.inputs import Inputs, recognize
from analytics.engine.key_places import homes_in
from analytics.engine.part_runs import PartRunner, in_threads
from analytics.errors import InputNotRecognizedError
from analytics.gaps.gap import Gap, words_of
from analytics.gaps.internal_topics import (
    by_which_setting,
    filters_of,
    filters_sentence,
    is_unread,
    left_out_of,
)
from analytics.gaps.uncertain_metadata import uncertain_metadata
from analytics.replay.dump.choices import (
    END,
    BeforeEnd,
    as_of_metadata,
    assumed_in,
    assumed_of,
    iso_time,
)
from analytics.replay.dump.followed_lines import lines_metadata
from analytics.replay.dump.times import end_of, remarks, resolved
from analytics.replay.log.rules import chosen_release
from analytics.replayed.given_settings import PARTITIONS_SETTINGS
from analytics.replayed.replayed_workspace import (
    ReplayedWorkspace,
    answered_instant,
    instant_in_words,
    replayed_instant,
)
from analytics.spark_tasks import run_tasks
from analytics.tables.decoded_records import absolute, decoded_workspace, refuse_without_records
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import MANIFEST, Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.options.answer import NEVER, Limit, is_exceeded
from jobs.cli.options.shared import workspace_folder
from jobs.cli.options.state import assumptions_in_words
from jobs.cli.settings_files import read_settings, read_topic_ids
from jobs.spark.java import java_problem
from jobs.spark.session import is_local, one_session, spark_session
from jobs.workspaces.decoding import kept_workspace
from jobs.workspaces.replaying import (
    lines_in_words,
    refuse_options_of_decoding,
    sentences_of_homes,
)

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from schemas.manifest import Manifest, Replay

# Where a question is answered: in this process, or in tasks on Spark where there is much to do.

_FOLDER: Final = ".answers-"


@contextmanager
def part_runner(
    console: Console, space: Workspace, manifest: Manifest, options: Mapping[str, Any]
) -> Iterator[PartRunner]:
    """Hand over what makes answers to questions about a workspace.

    Spark is started by the first question that takes several parts.

    Args:
        console: Where its start is told.
        space: The workspace; on a cluster it is seen by all machines, and holds what they make.
        manifest: Of the workspace.
        options: `master` and `conf`, as `spark_options` declares them.
    """
    if is_small_workspace(manifest):
        yield PartRunner()
        return
    master, conf = options.get("master"), options.get("conf")
    seen = [ListedFile(f"{absolute(space)}/{MANIFEST}", 0)]
    with one_session(), _folder(space, is_here=is_local(master)) as folder:

        def on_spark(count: int, run: Callable[[int], Any]) -> Sequence[Any]:
            if not master and not conf and (problem := java_problem()) is not None:
                # Nobody asked for Spark, and what was replayed elsewhere is answered without.
                console.detail(f"answered without Spark: {problem}")
                return in_threads(count, run)
            from jobs.spark.session import progress  # noqa: PLC0415 - heavy, as Spark is

            with (
                spark_session(console, master=master, conf=conf, small=True) as spark,
                progress(spark, console, "answering"),
            ):
                while seen:
                    # Once: the session stays.
                    check_executors(spark, [seen.pop()], folder)
                return run_tasks(spark, count, run)

        yield PartRunner(folder, on_spark)


@contextmanager
def _folder(space: Workspace, *, is_here: bool) -> Iterator[str]:
    """Hand over a folder that is removed at the end."""
    if is_here:
        with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
            yield folder
        return
    name = f"{_FOLDER}{uuid.uuid4().hex}"
    try:
        yield space.table(name)
    finally:
        space.remove(name)


HINT = "hint: --out DIR keeps this work, and DIR then answers at once"
_FILTERS = (*OF_NAMES, "topics", "partitions")


@dataclass(frozen=True)
class Replayed(ReplayedWorkspace):
    """State, and history where it was written, at the instant asked about.

    Attributes:
        inputs: The INPUTs as they were given.
        exit_code: 3 where a part of the input could not be read, else 0.
        fail_on: From which severity of findings on the exit code is 1.
        uncertain: What cannot be told of topics, settings and leaders.
    """

    inputs: tuple[str, ...] = ()
    exit_code: int = 0
    fail_on: str = NEVER
    uncertain: tuple[Gap, ...] = ()

    @property
    def left_out(self) -> tuple[Gap, ...]:
        """What is asked about and the workspace was made without."""
        return tuple(left_out_of(self.manifest, self.tables.selection))

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What cannot be told, whatever is asked."""
        return (*self.left_out, *self.uncertain)

    @property
    def response_metadata(self) -> dict[str, Any]:
        """What every answer says of what it was asked of."""
        return {
            "as_of": answered_instant(self),
            "input": list(self.inputs),
            "kafka_version": self.release,
            "lines": lines_metadata(self.lines),
            "assumed": assumed_in(self.manifest),
            "filters": filters_of(self.manifest),
            "left_out": list(words_of(self.left_out)),
            **({"uncertain": list(words_of(self.uncertain))} if self.uncertain else {}),
            **({"by_settings": by_settings} if (by_settings := self._by_settings()) else {}),
        }

    def _by_settings(self) -> list[str]:
        """Which numbers of partitions are from settings, or would not fit, one sentence each."""
        found = (by_which_setting(self, topic) for topic in PARTITIONS_SETTINGS)
        return [each for each in found if each is not None]


@contextmanager
def replayed(  # noqa: PLR0913 - one parameter an option
    console: Console,
    *,
    inputs: Sequence[str],
    needs: Sequence[str] = ("groups",),
    out: str | None = None,
    as_of: int | BeforeEnd | str | None = None,
    ends: Mapping[tuple[str, int], int] | None = None,
    kafka_version: str | None = None,
    topic_ids: str | None = None,
    has_hint: bool = True,
    assume: Sequence[str] = (),
    broker_configs: Sequence[str] = (),
    config: str | None = None,
    fail_on: str = NEVER,
    max_undecoded: Limit | None = None,
    **options: Any,  # noqa: ANN401 - options of decoding and of Spark, handed through
) -> Iterator[Replayed]:
    """Hand over a workspace with the tables that are needed, at the instant asked about.

    Where no instant is asked for, that of a replayed workspace is taken, and stated. Groups and
    topics are chosen when tables are read, and never before: records of one group are evidence on
    others, as they show elections, transactions and what stops a coordinator from loading.

    Args:
        console: Where it is told what is done.
        inputs: As given.
        needs: Names of the state and history tables that will be read.
        out: `--out`; None for a temporary workspace, where one is needed.
        as_of: As the option has it, or None where nothing was asked for.
        ends: End offsets by topic and partition.
        kafka_version: The release asked for.
        topic_ids: A side file.
        has_hint: Say that `--out` keeps the work, where there is none.
        assume: What a person vouches for where the dump cannot tell.
        broker_configs: Files with brokers' settings.
        config: A file with settings and thresholds.
        fail_on: From which severity of findings on the exit code is 1.
        max_undecoded: With more undecodable records the exit code is 3.
        **options: As `selection_options`, `input_options` and `spark_options` declare them.

    Raises:
        GroupscopeError: An INPUT, the output folder or Spark is not what it has to be.
    """
    settings = read_settings(broker_configs, config)
    assume = (*assume, *settings.of_elections())
    found = recognize(inputs, options.get("topic_partition"))
    selection = Selection.of_options(options)
    whole = {name: each for name, each in options.items() if name not in OF_NAMES}
    ready = _workspace_of(found, options)
    is_kept = False
    if ready is None and out is not None:
        is_before_end = bool(ends) or isinstance(as_of, int | BeforeEnd)
        ready = kept_workspace(out, found, {**whole, "keep_below_log_start": is_before_end})
        if is_kept := ready is not None:
            _check_resumed(options)
            console.say(f"{out} was made of the same files: they are not decoded again")
            # A dump is asked about its end where no instant is named.
            as_of = as_of if as_of is not None or ends else END
            inputs = (out,)
            options["resume"] = None
    if ready is not None:
        as_of = resolved(as_of, ready.manifest())
    asked = _ReplayOptions(
        as_of, ends or {}, kafka_version, topic_ids, assume, options, tuple(needs), is_kept
    )
    if ready is not None and asked.is_answered_by(ready):
        manifest = ready.manifest()
        source = decoded_workspace(ready)
        # What was unreadable when this was decoded still is.
        is_bad = (asked.is_of_dump and is_unread(manifest)) or is_exceeded(
            source.manifest(), max_undecoded
        )
        is_lacking = _report_filters(console, manifest, selection)
        code = CANNOT_TELL if is_bad or is_lacking else DONE
        kept = StoredTables(ready, selection)
        result = Replayed(
            kept,
            source,
            manifest,
            settings,
            inputs=found.arguments,
            exit_code=code,
            fail_on=fail_on,
        )
        _say_how_it_was_replayed(console, result, ready, asked)
        asked_now = _with_doubts(_with_end(result, console), needs, console)
        with part_runner(console, ready, manifest, options) as runner:
            yield replace(asked_now, runner=runner)
        return
    if ready is not None and as_of is None and not ends:
        as_of, ends = _instant_in(ready, console)
    # Spark is heavy: where tables are ready it is not even imported.
    from jobs.workspaces.replaying import replay_into  # noqa: PLC0415

    with workspace_folder(out, console) as folder, one_session():
        run = replay_into(
            folder,
            console,
            inputs=inputs,
            as_of=as_of,
            ends=ends,
            kafka_version=kafka_version,
            topic_ids=topic_ids,
            assume=assume,
            # A workspace that stays holds all tables; others may be asked for later.
            needs=needs if out is None else None,
            as_dump=is_kept,
            **whole,
        )
        space = Workspace(folder)
        source = decoded_workspace(ready or space)
        is_lacking = _report_filters(console, run.manifest, selection)
        is_bad = is_lacking or is_exceeded(source.manifest(), max_undecoded)
        result = Replayed(
            StoredTables(space, selection),
            source,
            run.manifest,
            settings,
            inputs=found.arguments,
            exit_code=run.exit_code or (CANNOT_TELL if is_bad else DONE),
            fail_on=fail_on,
        )
        asked_now = _with_doubts(_with_end(result, console), needs, console)
        with part_runner(console, space, run.manifest, options) as runner:
            yield replace(asked_now, runner=runner)
    if out is None and has_hint:
        console.say_at_end(HINT)


def _say_how_it_was_replayed(
    console: Console, state: Replayed, workspace: Workspace, request: _ReplayOptions
) -> None:
    """Say what a replay says when it is made, of one that was made before."""
    if not state.is_end:
        console.say(f"{workspace.location}: as of {state.instant}")
    time_ms = request.as_of if isinstance(request.as_of, int) else None
    for each in remarks(time_ms, request.ends, state.manifest):
        console.warn(each)
    for each in sentences_of_homes(homes_in(state.manifest)):
        console.warn(each)
    for each in (
        *lines_in_words(state.lines, state.instant),
        *assumptions_in_words(assumed_in(state.manifest)),
    ):
        console.say(each)


def _instant_in(
    workspace: Workspace, console: Console
) -> tuple[int | None, Mapping[tuple[str, int], int]]:
    """Return the instant of a replayed workspace, as options have it, and say it."""
    manifest = workspace.manifest()
    if "replay" not in manifest:
        return None, {}
    as_of = manifest["replay"]["as_of"]
    instant = replayed_instant(as_of)
    if not instant.is_end:
        console.say(f"{workspace.location}: as of {instant_in_words(as_of)}")
    return instant.timestamp_ms, instant.offsets


def _check_resumed(options: Mapping[str, Any]) -> None:
    """Check that a workspace that `resume` names is one, where nothing is decoded at all.

    Raises:
        AbsentFileError: It is none.
    """
    if options.get("resume") is not None:
        # Heavy, as all that decodes.
        from jobs.workspaces.decoding import resumed_workspace  # noqa: PLC0415

        resumed_workspace(options["resume"])


def _with_end(state: Replayed, console: Console) -> Replayed:
    """Say which instant is answered for, and what is not believed of the end of the dump.

    Where the dump cannot tell when it ends, the exit code is 3.
    """
    end = end_of(state.manifest)
    for each in end.notes:
        console.warn(each)
    if state.is_end and end.time is not None:
        console.say(f"as of {iso_time(end.time)}, the end of the dump")
    if end.doubt is None or not state.is_end:
        return state
    console.warn(f"cannot tell {end.doubt}")
    return replace(state, exit_code=state.exit_code or CANNOT_TELL)


def _with_doubts(state: Replayed, needs: Sequence[str], console: Console) -> Replayed:
    """Say what of the tables that an answer is made of is not certain at the instant."""
    uncertain = tuple(uncertain_metadata(state, needs))
    if not uncertain:
        return state
    for each in uncertain:
        console.error(f"cannot tell: {each.words}")
    return replace(state, uncertain=uncertain, exit_code=state.exit_code or CANNOT_TELL)


def _report_filters(console: Console, manifest: Manifest, selection: Selection) -> bool:
    """Say what a workspace was made without; return whether the question is about any of it."""
    left_out = left_out_of(manifest, selection)
    for each in left_out:
        console.error(f"cannot tell: {each.words}")
    filters = filters_of(manifest)
    given = {"groups": selection.groups, "exclude_groups": selection.exclude_groups}
    given["data_topics"] = selection.topics
    others = {name: each for name, each in filters.items() if each != list(given.get(name, ()))}
    if not left_out and (sentence := filters_sentence(others)):
        console.warn(sentence)
    return bool(left_out)


@dataclass(frozen=True)
class _ReplayOptions:
    """What was asked for, to be held against what a workspace has."""

    as_of: int | BeforeEnd | str | None
    ends: Mapping[tuple[str, int], int]
    kafka_version: str | None
    topic_ids: str | None
    assume: Sequence[str]
    options: Mapping[str, Any]
    needs: tuple[str, ...]
    is_of_dump: bool = False
    """What was not asked for is as a dump's replay has it, not as the workspace's has it."""

    def is_answered_by(self, workspace: Workspace) -> bool:
        """Return whether the workspace's tables are those that a replay would give."""
        manifest = workspace.manifest()
        done = manifest.get("replay")
        return (
            done is not None
            and self._is_instant_of(done)
            and self._is_release_of(manifest)
            and self._are_names_of(done)
            and assumed_in(manifest) == assumed_of(manifest, self.assume)
            and self._are_filters_of(done)
            and StoredTables(workspace).has(*self.needs)
        )

    def _is_instant_of(self, replay: Replay) -> bool:
        if self.as_of is None and not self.ends:
            return True
        time_ms = self.as_of if isinstance(self.as_of, int) else None
        if time_ms is not None and "lines" not in replay:
            return False  # replayed by a release that knew only the surviving lines
        return replay["as_of"] == as_of_metadata(time_ms, self.ends)

    def _is_release_of(self, manifest: Manifest) -> bool:
        workspace = None if self.is_of_dump else manifest
        return chosen_release(self.kafka_version, workspace, manifest).is_of(manifest)

    def _are_names_of(self, replay: Replay) -> bool:
        if self.topic_ids is None:
            return not (self.is_of_dump and replay.get("topic_ids"))
        named = [list(each) for each in read_topic_ids(self.topic_ids)]
        return named == replay.get("topic_ids", [])

    def _are_filters_of(self, replay: Replay) -> bool:
        """Return whether nothing that is wanted was left out.

        Names are filtered when tables are read; internal topics and partitions are not.
        """
        left_out = replay.get("filters", {})
        asked = {name: list(self.options.get(name, ())) for name in _FILTERS}
        asked = {name: each for name, each in asked.items() if each}
        if asked.get("topics") or asked.get("partitions") or left_out:
            return bool(asked == left_out)
        return True


def _workspace_of(inputs: Inputs, options: Mapping[str, Any]) -> Workspace | None:
    """Return the workspace that was given, None where INPUTs are a dump."""
    if not inputs.workspaces:
        return None
    if len(inputs.arguments) > 1:
        raise InputNotRecognizedError(
            f"{inputs.workspaces[0]} is a workspace: give it as the only INPUT"
        )
    workspace = Workspace(inputs.workspaces[0])
    refuse_without_records(workspace)
    refuse_options_of_decoding(workspace, options)
    return workspace
