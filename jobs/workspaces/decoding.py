"""What `decode` does where it is not done yet: plan, decode on Spark, account for all, publish.

The earlier run that `--resume` names, and what people are shown of what was kept of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from analytics.decode.decoded_pieces import EarlierDecoding, earlier_decoding
from analytics.decode.decoding import decode_dump
from analytics.decode.elections import known_leaders
from analytics.decode.log_decoding import Resumed
from analytics.decode.publication import published
from analytics.decode.resumption import CHANGED, DAMAGED, OTHER_RULES, UNREADABLE, matches_of
from analytics.decode.selection import Selection
from analytics.decode.tasks import Settings
from analytics.decode.workload import SMALL_BYTES, is_small_plan
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.copies.slices import Edges
from analytics.dump.files.inputs import recognize
from analytics.dump.files.storage import storage_of
from analytics.dump.records.redpanda_rows import REDPANDAS, said_of_redpanda
from analytics.errors import (
    AbsentFileError,
    CannotTellError,
    InputNotRecognizedError,
    WorkspaceError,
)
from analytics.gaps.internal_topics import is_unread
from analytics.locations import absolute_location, join
from analytics.tables.decoded_records import decoded_workspace, has_records
from analytics.version import VERSION
from analytics.workspace import MANIFEST, Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.options.answer import is_exceeded
from jobs.spark.session import progress, spark_session
from reports.plain_text import ranges, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.decode.decoding import Decoding
    from analytics.dump.files.inputs import Inputs
    from analytics.dump.files.model import Plan
    from jobs.cli.console import Console
    from jobs.cli.options.answer import Limit
    from schemas.manifest import Manifest, Options, ResumedEntry


_WHY: Final = {
    CHANGED: "segments were cleaned, truncated or written by another leader",
    OTHER_RULES: "the log starts later, or another copy has their records",
    DAMAGED: "segments are damaged",
    UNREADABLE: "segments cannot be read",
}
"""Why segments are decoded that had been decoded, as people read it."""


def resumed_workspace(location: str) -> Workspace:
    """Return a workspace that a person names, by what it is called from wherever it is read.

    Raises:
        AbsentFileError: It is no workspace, finished or not.
    """
    space = Workspace(absolute_location(location))
    if not space.is_marked:
        raise AbsentFileError(f"--resume {location}: no workspace of groupscope is there")
    return space


def earlier_run(location: str, selection: Selection) -> EarlierDecoding:
    """Return what a workspace that a person names was decoded of.

    Raises:
        AbsentFileError: It is no workspace, finished or not.
    """
    source = space = resumed_workspace(location)
    try:
        manifest = space.manifest()
        if manifest.get("redacted"):
            return EarlierDecoding(space, refusal="it was redacted")
        source = decoded_workspace(space)
        return earlier_decoding(source, source.manifest(), selection)
    except CannotTellError:
        return EarlierDecoding(source, refusal="it is of a dialect")
    except WorkspaceError as error:
        return EarlierDecoding(source, refusal=str(error))


def resumed_in_words(resumed: ResumedEntry) -> str:
    """Say what was kept of an earlier run, which segments it had were decoded again, and why."""
    where = resumed["resumed_from"]
    kept = sum(each["bytes_kept"] for each in resumed["partitions"])
    decoded = sum(each["bytes_decoded"] for each in resumed["partitions"])
    if resumed["refusal"] is not None or not kept:
        why = resumed["refusal"] or "no segment of this dump begins as one that it was made of"
        return f"nothing is kept from {where}: {why}"
    places: dict[tuple[str, str], set[int]] = {}
    for each in resumed["partitions"]:
        for code in _WHY.keys() & set(each["why"]):
            places.setdefault((code, each["topic"]), set()).add(each["partition"])
    again = "".join(
        f"; {topic} {ranges(numbers)}: {_WHY[code]}"
        for (code, topic), numbers in sorted(places.items())
    )
    return (
        f"rows of {size_of(kept)} of logs are kept from {where}, "
        f"{size_of(decoded)} were decoded{again}"
    )


# A workspace given as `--out` that already holds what INPUTs would be decoded to.

_BELOW_LOG_START = "keep_below_log_start"


def input_listing(inputs: Inputs) -> str | None:
    """Return a digest that differs as soon as a file below INPUTs is new, gone or changed.

    Returns:
        None where a file system, or a table, does not tell when it changed.
    """
    if any(not each.files for each in inputs.raw_rows):
        return None
    digest = sha256()
    rows = (file for each in inputs.raw_rows for file in each.files)
    for path in (*(disk.path for disk in inputs.disks), *rows):
        for name, size, modified in _files(path):
            if not modified:
                return None
            digest.update(f"{name}\0{size}\0{modified}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def kept_workspace(out: str, inputs: Inputs, options: Mapping[str, Any]) -> Workspace | None:
    """Return the workspace `out` where INPUTs were decoded into it and are what they were.

    Args:
        out: As given; it may be no workspace at all.
        inputs: What INPUTs are.
        options: Of decoding, with `keep_below_log_start`.
    """
    space = Workspace(out)
    if space.filesystem.get_file_info(space.path(MANIFEST)).type is not fs.FileType.File:
        return None
    try:
        manifest = space.manifest()
    except (WorkspaceError, CannotTellError):
        # Damaged, of another release, or of a dialect: it is made again.
        return None
    is_same = (
        manifest.get("groupscope_version") == VERSION
        and manifest["created_from"] == list(inputs.arguments)
        and _are_options_of(manifest["options"], options)
        and manifest.get("input_listing") is not None
        and manifest["input_listing"] == input_listing(inputs)
        and has_records(space)
    )
    return space if is_same else None


def _are_options_of(decoded: Options, options: Mapping[str, Any]) -> bool:
    """Return whether decoding anew would leave out nothing else, and no more."""
    # Records below the log start that nobody needs do no harm.
    if options.get(_BELOW_LOG_START) and not decoded.get(_BELOW_LOG_START):
        return False
    return all(
        _plain(value) == _plain(options.get(name))
        for name, value in decoded.items()
        if name != _BELOW_LOG_START
    )


def _plain(value: object) -> object:
    """Return an option's value so that those that mean the same are equal."""
    if isinstance(value, list | tuple):
        return sorted(map(str, value)) or None
    return value or None


def _files(path: str) -> Iterable[tuple[str, int, int]]:
    storage = storage_of(path)
    entry = storage.entry(path)
    if entry is None or not entry.is_folder:
        yield path, entry.size if entry else 0, entry.modified if entry else 0
        return
    for each in sorted(storage.list(path), key=lambda each: each.name):
        if each.is_folder:
            yield from _files(join(path, each.name))
        else:
            yield join(path, each.name), each.size, each.modified


@dataclass(frozen=True)
class DecodeResult:
    """A finished run, told by its manifest."""

    manifest: Manifest

    def exit_code(self, limit: Limit | None) -> int:
        """Return 3 where something was unreadable, or more than the limit was undecodable.

        A partition of which records are lost and none is left was unreadable, too.
        """
        unread = is_unread(self.manifest)
        return CANNOT_TELL if unread or is_exceeded(self.manifest, limit) else DONE


def decode_into(  # noqa: PLR0913 - one parameter an option
    out: str,
    console: Console,
    *,
    inputs: Sequence[str],
    topics: tuple[str, ...] = (),
    partitions: tuple[int, ...] = (),
    groups: tuple[str, ...] = (),
    exclude_groups: tuple[str, ...] = (),
    data_topics: tuple[str, ...] = (),
    topic_partition: str | None = None,
    prefer_copy: str | None = None,
    strict_high_watermark: bool = False,
    keep_below_log_start: bool = False,
    value_encoding: str | None = None,
    resume: str | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    may_be_here: bool = False,
) -> DecodeResult:
    """Decode INPUTs into the workspace `out`.

    With `may_be_here` a small dump is decoded in this process, without waiting for Spark, unless
    `master` or `conf` ask for it. `keep_below_log_start` is for asking about an instant before the
    end, when what was deleted since was still the broker's. Of the workspace `resume` is kept what
    it has of the same bytes; a dump is small where little else is left.

    Raises:
        GroupscopeError: An INPUT, the output folder or Spark is not what it has to be.
    """
    found = recognize(inputs, topic_partition)
    for sentence in found.descriptions:
        console.detail(sentence)
    if found.workspaces and not (found.disks or found.raw_rows):
        raise InputNotRecognizedError(
            f"{found.workspaces[0]} is a workspace and decoded already; name the dump"
        )
    options = PlanOptions(
        topics=frozenset(topics) or None,
        partitions=frozenset(partitions) or None,
        edges=Edges(
            strict_high_watermark=strict_high_watermark, keep_below_log_start=keep_below_log_start
        ),
        prefer_copy=prefer_copy,
        topic_partition=topic_partition,
        value_encoding=value_encoding,
    )
    listing = input_listing(found)
    selection = Selection(groups, exclude_groups, data_topics)
    earlier = None if resume is None else earlier_run(resume, selection)
    staging = Workspace(out).prepare()
    try:
        settings = Settings(staging.location, selection)
        planned = plan(found, options, known_leaders)
        decode = _Decoding(console, planned, found, settings, options, earlier)
        is_here = may_be_here and not (master or conf or found.raw_rows)
        decoding = decode.here_if_small() if is_here else None
        decoding = decoding or decode.on_spark(master, conf)
        manifest = published(staging, found, planned, decoding, settings, options, listing=listing)
    except BaseException:
        # Also where the person interrupts: nothing half-written may stay.
        staging.discard()
        raise
    if "resumed" in manifest:
        console.say(resumed_in_words(manifest["resumed"]))
    _warn_of_unread(console, manifest)
    return DecodeResult(manifest)


class _Decoding:
    """One dump to be decoded, in this process or on Spark."""

    def __init__(
        self,
        console: Console,
        planned: Plan,
        inputs: Inputs,
        settings: Settings,
        options: PlanOptions,
        earlier: EarlierDecoding | None,
    ) -> None:
        self._console = console
        self._plan = planned
        self._inputs = inputs
        self._settings = settings
        self._options = options
        self._earlier = earlier
        self._resumed: Resumed | None = None

    def here_if_small(self) -> Decoding | None:
        """Decode logs in this process; None where there is too much to do."""
        slices = self._plan.slices
        if self._earlier is None:
            is_small = is_small_plan(self._plan)
        else:
            self._resumed = Resumed(self._earlier, matches_of(slices, self._earlier))
            is_small = self._resumed.bytes_to_decode(slices) <= SMALL_BYTES
        if not is_small:
            return None
        return decode_dump(
            None, self._plan, (), self._settings, self._options, resumed=self._resumed
        )

    def on_spark(self, master: str | None, conf: Mapping[str, str] | None) -> Decoding:
        """Decode in tasks."""
        # Of logs the JVM only hands out tasks, however large the dump is.
        small = not self._inputs.raw_rows
        with spark_session(self._console, master=master, conf=conf, small=small) as spark:
            if self._earlier is not None and self._resumed is None:
                # What is kept is looked for once executors are known to be fit for it.
                self._resumed = Resumed(self._earlier)
            return decode_dump(
                spark,
                self._plan,
                self._inputs.raw_rows,
                self._settings,
                self._options,
                progress(spark, self._console, "decoding"),
                self._resumed,
            )


def _warn_of_unread(console: Console, manifest: Manifest) -> None:
    """Say what could not be read, and what changed meanwhile."""
    for file in manifest["unreadable"]:
        console.warn(": ".join(filter(None, (file["copy"], file["segment"], file["why"]))))
    for row in manifest["unplaced_rows"]:
        number = "" if row["row"] is None else f", row {row['row']:,}"
        console.warn(f"{row['file']}{number}: {row['flaw']}; not decoded")
    if of_redpanda := sum(
        account["undecoded"].get(reason, 0)
        for account in manifest["reconciliation"]
        for reason in REDPANDAS
    ):
        console.warn(f"{said_of_redpanda(of_redpanda)}: not decoded")
    for log in manifest["partitions"]:
        if log.get("changed_while_read"):
            console.warn(
                f"{log['copy']}: {log['topic']}-{log['partition']} changed while it was read"
            )
