"""State and history of one instant, beside the decoded records they were made of.

Its manifest says which instant that is, and what the dump holds as far as it matters then.

Evaluations that are kept in a workspace, beside those of other questions to the same dump.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.decode.selection import names_wanted
from analytics.engine.part_runs import PartRunner
from analytics.epoch_times import EPOCH, milliseconds_of
from analytics.errors import CannotTellError, SettingRefusedError, WorkspaceError
from analytics.gaps.internal_topics import topics_held
from analytics.replay.dump.choices import assumed_in, iso_time
from analytics.replay.dump.coverage import coverage_of
from analytics.replay.dump.followed_lines import (
    at_instant,
    followed_lines,
    of_history,
    parsed_time,
    read_before_swaps,
)
from analytics.replay.dump.times import end_of, last_record_time
from analytics.replay.log.log_times import AsOf, frames_of_rows
from analytics.replayed.given_settings import Settings
from analytics.tables.parted_table import parted
from analytics.tables.stored_tables import EVERYTHING, StoredTables, write_parts
from analytics.workspace import DECODED, EVALUATIONS, FOLDERS, Part, Workspace, reading

if TYPE_CHECKING:
    from analytics.replay.dump.followed_lines import FollowedLine
    from analytics.replay.log.losses import Coverage
    from schemas.manifest import AsOfEntry, EvaluationEntry, FrameEntry, Manifest


# The instant of an answer as JSON has it: never without a time.


def answered_instant(state: ReplayedWorkspace) -> dict[str, Any]:
    """Return `time`, `is_end` and `offsets`, and `notes` where a time is not believed.

    Where no time was asked for, it is that of the last record that counts. It is null only where no
    record has a time.
    """
    asked = state.as_of
    end = end_of(state.manifest)
    notes = [*end.notes, *([] if end.doubt is None else [f"cannot tell {end.doubt}"])]
    return {
        "time": asked["time"] or _last_time(state),
        "is_end": state.is_end,
        "offsets": asked["offsets"],
        **({"notes": notes} if notes else {}),
    }


def instant_of(state: ReplayedWorkspace) -> datetime:
    """Return the instant asked about; at the end of a dump, the time of its last record."""
    said = answered_instant(state)["time"]
    return EPOCH if said is None else datetime.fromisoformat(said)


def _last_time(state: ReplayedWorkspace) -> str | None:
    ends = state.as_of["offsets"]
    partitions = state.manifest["partitions"]
    whole = last_record_time(
        (each for each in partitions if f"{each['topic']}-{each['partition']}" not in ends),
        state.manifest.get("leader_clocks", ()),
    )
    cut = (_last_time_below(state, place, end) for place, end in ends.items())
    return max((each for each in (whole, *cut) if each is not None), default=None)


def _last_time_below(state: ReplayedWorkspace, place: str, end: int) -> str | None:
    """Return the time of the last record of a partition below an offset."""
    topic, _, partition = place.rpartition("-")
    wanted = (
        (pc.field("topic") == topic)
        & (pc.field("partition") == int(partition))
        & (pc.field("offset") < end)
    )
    source = state.source
    folder = fs.FileSelector(source.path(DECODED), allow_not_found=True)
    times: list[datetime] = []
    for table in source.filesystem.get_file_info(folder):
        with reading(table.path):
            records = ds.dataset(table.path, filesystem=source.filesystem, format="parquet")
            found = records.to_table(columns=["timestamp"], filter=wanted)["timestamp"]
        if (latest := pc.max(found).as_py()) is not None:
            times.append(latest)
    whole = end_of(state.manifest).time
    believed = [each for each in times if whole is None or each <= whole]
    return iso_time(max(believed)) if believed else None


@dataclass(frozen=True)
class ReplayedWorkspace:
    """What a question is asked of.

    Attributes:
        tables: State and history, of the groups and topics that are asked about.
        source: The workspace with the decoded tables, which may be another one.
        manifest: Of the workspace that holds the tables, as it is of the state at the instant; its
            section `replay` says which.
        settings: Of brokers and groups, and thresholds of rules, as far as a person gives them.
        runner: Where answers are made, part by part.
    """

    tables: StoredTables
    source: Workspace
    manifest: Manifest
    settings: Settings = field(default_factory=Settings)
    runner: PartRunner = field(default_factory=PartRunner)

    def __post_init__(self) -> None:
        """Take what the manifest says of the logs of the instant."""
        object.__setattr__(self, "manifest", at_instant(self.manifest, is_end=self.is_end))

    @property
    def as_of(self) -> AsOfEntry:
        """The instant: `time` (ISO 8601, or null for the end) and `offsets` by partition."""
        return self.manifest["replay"]["as_of"]

    @property
    def frames(self) -> Sequence[FrameEntry]:
        """Where the logs whose times go back are cut, as `frame_rows` returns it."""
        return self.manifest["replay"].get("frames", ())

    @property
    def release(self) -> str:
        """The release of Kafka whose rules were applied."""
        return self.manifest["replay"]["kafka_version"]

    @property
    def is_end(self) -> bool:
        """Whether everything in the dump counts."""
        return self.as_of["time"] is None and not self.as_of["offsets"]

    @property
    def manifest_of_history(self) -> Manifest:
        """The manifest as it is of the history tables.

        State at the end of the dump is of what a broker will load, a cleaner's swap files among
        it; history is of the segments that these take the place of.
        """
        return of_history(self.manifest)

    @property
    def before_swaps(self) -> Sequence[tuple[str, int]]:
        """Partitions of which records count that a cleaner's swap file takes the place of."""
        return read_before_swaps(self.manifest)

    @property
    def lines(self) -> tuple[FollowedLine, ...]:
        """The lines of diverged partitions that are followed instead of the surviving ones."""
        return followed_lines(self.manifest, parsed_time(self.as_of["time"]))

    @property
    def of_everything(self) -> Self:
        """The same state, whichever groups and topics are asked about: evidence is of all."""
        return replace(self, tables=StoredTables(self.tables.workspace))

    def of_groups(self, groups: Sequence[str]) -> Self:
        """Return the same state, of some groups alone.

        Args:
            groups: Names and patterns.
        """
        chosen = replace(self.tables.selection, groups=tuple(groups), exclude_groups=())
        return replace(self, tables=replace(self.tables, selection=chosen))

    def topics_asked(self, topics: pa.ChunkedArray) -> pa.Array:
        """Return the names among these that are asked about."""
        names = names_wanted(pc.unique(topics).to_pylist(), self.tables.selection.topics)
        return pa.array(names, pa.string())

    def topics_wanted(self, topics: pa.ChunkedArray) -> pa.Array:
        """Return the names among these that are asked about, and that the workspace has offsets of.

        What it was made without is not there to be judged: no offset of it is not "none committed".
        """
        names = topics_held(self.manifest, self.topics_asked(topics).to_pylist())
        return pa.array(names, pa.string())

    def partitions_by_settings(self, topic: str) -> int | None:
        """Return how many partitions brokers were set to make an internal topic with.

        None where no settings were given, or several that differ.
        """
        return self.settings.partitions_of(topic)

    @property
    def instant(self) -> str:
        """The instant in words."""
        return instant_in_words(self.as_of)


def instant_in_words(as_of: AsOfEntry) -> str:
    """Return in words the instant that the manifest of a replay says."""
    named = [f"{name} at {end}" for name, end in as_of["offsets"].items()]
    if as_of["time"] is not None:
        named.insert(0, str(as_of["time"]))
    return ", ".join(named) or "the end of the dump"


def replayed_instant(as_of: AsOfEntry, frames: Iterable[FrameEntry] = ()) -> AsOf:
    """Return the instant that the manifest of a replay says.

    Args:
        as_of: As answers have it.
        frames: Of partitions whose times go back, as `frame_rows` returns them.
    """
    time = parsed_time(as_of["time"])
    offsets = {}
    for place, end in as_of["offsets"].items():
        topic, _, number = place.rpartition("-")
        offsets[topic, int(number)] = end
    time_ms = milliseconds_of(time) if time else None
    return AsOf(offsets, time_ms, frames_of_rows(frames))


def known_coverage(state: ReplayedWorkspace) -> Coverage:
    """Return where the dump's edges are at the instant."""
    instant = replayed_instant(state.as_of, state.frames)
    return coverage_of(
        state.manifest, instant, state.source, state.lines, assumed_in(state.manifest)
    )


AUDIT: Final = "audit"
"""Stands for the question of what an audit keeps."""


def keep_evaluations(
    space: Workspace,
    tables: Mapping[str, pa.Table],
    replayed: ReplayedWorkspace,
    question: str,
    *,
    is_usual: bool = True,
) -> None:
    """Write tables into the workspace; the manifest says of which instant they are.

    What is there of another dump, or of other records of this one, goes: no later question may mix
    the two.

    Args:
        space: Where they are kept.
        tables: By name.
        replayed: What was asked.
        question: Whose answer they are, or `AUDIT`.
        is_usual: It was asked with the settings that it has by itself.
    """
    is_whole = is_usual and replayed.tables.selection == EVERYTHING
    is_whole &= replayed.settings == Settings()
    staging = space.prepare()
    try:
        manifest = _manifest_there(space, replayed)
        is_kept = manifest is not None
        if manifest is None:
            # State and history are elsewhere: nobody shall look for them here.
            manifest = _of_dump(replayed.manifest)
        earlier = manifest.get("evaluations", {})
        parts = [
            part
            for part in (_stored_parts(space) if is_kept else ())
            if (name := part.table.rpartition("/")[2]) in earlier and name not in tables
        ]
        kept = {name: parted(tables, name) for name in tables}
        parts += [part for name, rows in kept.items() for part in write_parts(staging, name, rows)]
        made: dict[str, EvaluationEntry] = {
            name: {
                "as_of": replayed.as_of,
                "kafka_version": replayed.release,
                "rows": rows.num_rows,
                "question": question,
                "is_whole": is_whole,
            }
            for name, rows in kept.items()
        }
        manifest["evaluations"] = {**earlier, **made}
        staging.publish(parts, [EVALUATIONS] if is_kept else FOLDERS, manifest)
    except BaseException:
        staging.discard()
        raise


def refuse_audited(space: Workspace, replayed: ReplayedWorkspace) -> None:
    """Refuse to keep an answer among those of an audit of the same: its page is made of them.

    Raises:
        SettingRefusedError: The folder holds one.
        WorkspaceError: As `keep_evaluations`.
    """
    there = _manifest_there(space, replayed) if space.is_marked else None
    kept = {} if there is None else there.get("evaluations", {})
    if any(each.get("question") == AUDIT for each in kept.values()):
        raise SettingRefusedError(
            f"{space.location} holds an audit, whose page is made of the answers there: keep this "
            f"answer in another folder (--out)"
        )


def forget_evaluations(space: Workspace) -> None:
    """Delete the evaluations of a workspace, and leave the rest as it is."""
    manifest = space.manifest()
    if manifest.pop("evaluations", None) is not None:
        space.prepare().publish([], [EVALUATIONS], manifest)


def _manifest_there(space: Workspace, replayed: ReplayedWorkspace) -> Manifest | None:
    """Return the manifest of a workspace that was asked, or holds the same records.

    Others may have kept their answers meanwhile. None is any other workspace, and none at all.

    Raises:
        WorkspaceError: The workspace was asked, and a run that was cut off has written into it
            since: nobody shall vouch for what it left.
    """
    is_asked = space.is_same_as(replayed.tables.workspace)
    try:
        there = space.manifest()
    except (WorkspaceError, CannotTellError):
        if is_asked:
            raise
        return None
    return there if is_asked or _of_dump(there) == _of_dump(replayed.manifest) else None


def _of_dump(manifest: Manifest) -> Manifest:
    """Return what a manifest says of a dump, without what was made of it."""
    of_dump = manifest.copy()
    of_dump.pop("replay", None)
    of_dump.pop("evaluations", None)
    of_dump.pop("files", None)
    return of_dump


def _stored_parts(space: Workspace) -> list[Part]:
    """Return the files of evaluations that are there, in the order in which they are numbered.

    What a file system lists is in any order: files in another one would be moved.
    """
    selector = fs.FileSelector(space.path(EVALUATIONS), allow_not_found=True, recursive=True)
    paths = sorted(each.path for each in space.filesystem.get_file_info(selector))
    return [
        Part(f"{EVALUATIONS}/{each.split('/')[-2]}", each, 0)
        for each in paths
        if each.endswith(".parquet")
    ]
