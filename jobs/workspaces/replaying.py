"""What `replay` does, and says of it: decode where that is not done, replay, publish the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from analytics.decode.selection import OF_NAMES
from analytics.decode.workload import is_small_workspace
from analytics.dump.files.inputs import recognize
from analytics.dump.inspection.found_losses import with_archived_losses
from analytics.engine.cut_tables import framed
from analytics.engine.replay_work import ReplayWork, replay_workspace
from analytics.errors import InputNotRecognizedError
from analytics.replay.dump.choices import (
    COMPLETE_ARCHIVE,
    END,
    BeforeEnd,
    assumed_of,
    iso_time,
    moment,
)
from analytics.replay.dump.followed_lines import (
    CANNOT_TELL,
    NOBODY_LED,
    FollowedLine,
    followed_lines,
    of_history,
    read_before_swaps,
)
from analytics.replay.dump.times import remarks, resolved
from analytics.replay.log.log_times import AsOf
from analytics.replay.log.rules import (
    FROM_RECORDS,
    NAMED_BEFORE,
    NOTHING,
    ChosenRelease,
    chosen_release,
)
from analytics.replay.log.topic_homes import NOT_SEEN, TopicHomes
from analytics.tables.decoded_records import (
    absolute,
    decoded_workspace,
    refuse_without_records,
    refuse_without_tables,
)
from analytics.workspace import EVALUATIONS, FOLDERS, HISTORY, STATE, Workspace
from jobs.cli.exit_codes import DONE
from jobs.cli.options.state import assumptions_in_words
from jobs.cli.settings_files import read_settings, read_topic_ids
from jobs.spark.session import one_session, spark_session
from reports.plain_text import count, ranges
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.workspace import Part, Staging
    from jobs.cli.console import Console
    from jobs.workspaces.decoding import DecodeResult
    from schemas.manifest import Manifest

# What has to be said of groups and share partitions that lie where no client looks for them.

_GROUP: Final = ("group", "groups")
_SHARE_PARTITION: Final = ("share partition", "share partitions")


def sentences_of_homes(homes: Mapping[str, TopicHomes]) -> Iterator[str]:
    """Say of topics what lies elsewhere, and since when, or that it cannot be told.

    Args:
        homes: By internal topic.
    """
    for topic, each in homes.items():
        what = _SHARE_PARTITION if topic == SHARE_GROUP_STATE else _GROUP
        if each.disputed:
            yield (
                f"cannot tell where clients look for {count(len(each.disputed), *what)}: no number "
                f"of partitions of {topic} explains where all keys lie; the records of one "
                f"partition are shown for each"
            )
        if each.perhaps is not None:
            yield (
                f"cannot tell whether brokers went by {each.partitions} or {each.perhaps} "
                f"partitions of {topic} then: of what lies elsewhere by the other number nothing "
                f"is certain"
            )
        elif each.misplaced and not each.disputed:
            yield _elsewhere(topic, each, what)


def _elsewhere(topic: str, homes: TopicHomes, what: tuple[str, str]) -> str:
    keys = sum(homes.misplaced.values())
    places = f"{topic} {ranges(homes.misplaced)}"
    since = ""
    if homes.before and homes.since is not None and homes.since != NOT_SEEN:
        since = f" since {iso_time(homes.since)}, when {homes.partitions} partitions began to count"
    only = ""
    if homes.unreachable:
        only = f"; {count(homes.unreachable, *what)} of them in no other partition"
    return (
        f"records of {count(keys, *what)} in {places} lie where no client is sent"
        f"{since}{only}: they are left out, and timeline tells what was lost"
    )


# Which lines of diverged partitions an answer follows, and how it says so.


def lines_in_words(lines: Iterable[FollowedLine], instant: str) -> Iterator[str]:
    """Say which lines are followed, why, and how to ask the other.

    Args:
        lines: What is followed.
        instant: In words.
    """
    alike = sorted(lines, key=_alike)
    for (state, copy, survivor), group in groupby(alike, key=_alike):
        held = list(group)
        places = _places(held)
        ended = min((each.elected_at for each in held if each.elected_at is not None), default=None)
        other = f"to ask the line that survived: the dump with --prefer-copy {survivor}"
        until = f"until the election at {iso_time(ended)}" if ended is not None else ""
        if state == CANNOT_TELL:
            yield (
                f"cannot tell which line of {places} was in force at {instant}: {copy}'s is "
                f"followed; {other}"
            )
        elif state == NOBODY_LED:
            yield (
                f"{places}: nobody led at {instant}{until and f', {until}'}; the line of {copy}, "
                f"which led last, is followed; {other}"
            )
        else:
            yield f"{places}: the line of {copy}, which led {until}, is followed; {other}"


def _alike(line: FollowedLine) -> tuple[str, str, str]:
    return line.at_that_time, line.copy, line.surviving_copy


def _places(lines: Iterable[FollowedLine]) -> str:
    topics = groupby(sorted(lines, key=lambda each: each.topic), key=lambda each: each.topic)
    return " and ".join(
        f"{topic} {ranges(each.partition for each in group)}" for topic, group in topics
    )


_FILTERS = (*OF_NAMES, "topics", "partitions")


@dataclass(frozen=True)
class ReplayResult:
    """A finished run: its manifest, and 3 where an INPUT could not be read whole."""

    manifest: Manifest
    exit_code: int


@one_session()
def replay_into(  # noqa: PLR0913 - one parameter an option
    out: str,
    console: Console,
    *,
    inputs: Sequence[str],
    as_of: int | BeforeEnd | str | None = None,
    ends: Mapping[tuple[str, int], int] | None = None,
    kafka_version: str | None = None,
    topic_ids: str | None = None,
    assume: Sequence[str] = (),
    broker_configs: Sequence[str] = (),
    config: str | None = None,
    needs: Sequence[str] | None = None,
    as_dump: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    **selection: Any,  # noqa: ANN401 - options of decoding, handed through
) -> ReplayResult:
    """Replay INPUTs into the workspace `out`; all tables, or only those that are needed.

    A release that was named for the replay of a workspace goes on to count, unless it stands for
    the dump it was made of (`as_dump`).

    Raises:
        GroupscopeError: An INPUT, the output folder or Spark is not what it has to be.
    """
    assume = (*assume, *read_settings(broker_configs, config).of_elections())
    is_end = as_of in (None, END) and not ends
    # What lies below the log start was the broker's at instants before it was deleted.
    source, result, given = _decoded(
        out,
        console,
        inputs,
        {**selection, "keep_below_log_start": not is_end},
        master,
        conf,
    )
    manifest = source.manifest()
    as_of = resolved(as_of, manifest)
    history = of_history(manifest)
    for each in remarks(as_of, ends or {}, history):
        console.warn(each)
    time_ms = as_of if isinstance(as_of, int) else None
    lines = followed_lines(manifest, None if time_ms is None else moment(time_ms))
    instant = framed(AsOf(ends or {}, time_ms), source, lines, read_before_swaps(history))
    workspace = None if as_dump or given is None else given.manifest()
    release = chosen_release(kafka_version, workspace, manifest)
    _say_which(console, release, given)
    wanted = ReplayWork(
        instant,
        release.release,
        read_topic_ids(topic_ids) if topic_ids else [],
        # A dump was filtered while it was read.
        {} if result else {name: selection.get(name, ()) for name in _FILTERS},
        needs,
        lines,
        assumed_of(manifest, assume),
        is_release_named=release.named is not None,
    )
    manifest = with_archived_losses(manifest, is_whole=COMPLETE_ARCHIVE in wanted.assumed)
    wanted = wanted.with_homes(source, manifest)
    for each in assumptions_in_words(wanted.assumed):
        console.say(each)
    for each in lines_in_words(wanted.lines, "" if time_ms is None else iso_time(moment(time_ms))):
        console.say(each)
    for each in sentences_of_homes(wanted.homes):
        console.warn(each)
    staging = Workspace(out).prepare()
    try:
        if is_small_workspace(manifest):
            parts = replay_workspace(source, staging, wanted, manifest)
        else:
            parts = _on_spark(source, staging, wanted, manifest, console, master, conf)
        manifest["replay"] = wanted.metadata(parts)
        if not result:
            manifest["replay"]["decoded_in"] = absolute(source)
        # What was evaluated is of another instant.
        manifest.pop("evaluations", None)
        staging.publish(parts, _replaced(source, staging.workspace), manifest)
    except BaseException:
        # Also where the person interrupts: nothing half-written may stay.
        staging.discard()
        raise
    return ReplayResult(manifest, result.exit_code(None) if result else DONE)


def _say_which(console: Console, chosen: ChosenRelease, workspace: Workspace | None) -> None:
    """Say by the rules of which release a replay goes, unless it was named just now."""
    if chosen.chosen_by == NAMED_BEFORE and workspace is not None:
        console.say(
            f"{workspace.location}: by the rules of Kafka {chosen.release}, as it was replayed"
        )
    elif chosen.chosen_by == NOTHING:
        console.say(
            "nothing shows which release wrote this dump: "
            f"the rules of Kafka {chosen.release} apply"
        )
    elif chosen.chosen_by == FROM_RECORDS:
        console.detail(f"Kafka {chosen.release} or newer wrote this dump")


def _replaced(source: Workspace, target: Workspace) -> Sequence[str]:
    """Return the folders that a replay replaces: where records are elsewhere, none stay here."""
    return (STATE, HISTORY, EVALUATIONS) if target.is_same_as(source) else FOLDERS


def _on_spark(
    source: Workspace,
    staging: Staging,
    work: ReplayWork,
    manifest: Manifest,
    console: Console,
    master: str | None,
    conf: Mapping[str, str] | None,
) -> list[Part]:
    from jobs.spark.session import progress  # noqa: PLC0415 - heavy, as Spark is

    with (
        spark_session(console, master=master, conf=conf, small=True) as spark,
        progress(spark, console, "replaying"),
    ):
        return replay_workspace(source, staging, work, manifest, spark)


_SAYS_HOW_TO_READ: Final = (
    "prefer_copy",
    "strict_high_watermark",
    "topic_partition",
    "value_encoding",
)


def refuse_options_of_decoding(workspace: Workspace, options: Mapping[str, Any]) -> None:
    """Refuse to read otherwise, or to go on from an earlier run, what is decoded already.

    Raises:
        InputNotRecognizedError: That is asked for.
    """
    decoded_by = workspace.manifest()["options"]
    for name in _SAYS_HOW_TO_READ:
        asked = options.get(name)
        if asked and asked != decoded_by.get(name):
            value = "" if asked is True else f" {asked}"
            raise InputNotRecognizedError(
                f"{workspace.location} is decoded already: --{name.replace('_', '-')}{value} "
                f"needs the dump; name the dump, not the workspace"
            )
    if options.get("resume") is not None:
        raise InputNotRecognizedError(
            f"{workspace.location} is decoded already: --resume needs the dump; name the dump, "
            "not the workspace"
        )


def _decoded(
    out: str,
    console: Console,
    inputs: Sequence[str],
    selection: Mapping[str, Any],
    master: str | None,
    conf: Mapping[str, str] | None,
) -> tuple[Workspace, DecodeResult | None, Workspace | None]:
    """Return a workspace with decoded tables; a dump is decoded into `out`, with that result.

    Where a workspace was given, it comes third.
    """
    found = recognize(inputs, selection.get("topic_partition"))
    if found.workspaces:
        if len(inputs) > 1:
            raise InputNotRecognizedError(
                f"{found.workspaces[0]} is a workspace: give it as the only INPUT"
            )
        given = Workspace(found.workspaces[0])
        refuse_without_records(given)
        refuse_options_of_decoding(given, selection)
        source = decoded_workspace(given)
        refuse_without_tables(source)
        return source, None, given
    # Heavy, as Spark is: what is decoded already is replayed without.
    from jobs.workspaces.decoding import decode_into  # noqa: PLC0415

    result = decode_into(
        out, console, inputs=inputs, master=master, conf=conf, may_be_here=True, **selection
    )
    return Workspace(out), result, None
