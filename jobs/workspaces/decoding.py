"""What `decode` does: plan, decode on Spark, account for everything, publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.decode.losses.elections import known_leaders
from analytics.decode.run.decoding import decode_dump
from analytics.decode.run.publication import published
from analytics.decode.run.workload import is_small_plan
from analytics.decode.selection import Selection
from analytics.decode.tasks import Settings
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.copies.slices import Edges
from analytics.dump.files.inputs import recognize
from analytics.dump.records.redpanda_rows import REDPANDAS, said_of_redpanda
from analytics.errors import InputNotRecognizedError
from analytics.gaps.internal_topics import is_unread
from analytics.workspace import Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.options.ending import is_exceeded
from jobs.spark.progress import progress
from jobs.spark.session import spark_session
from jobs.workspaces.kept_workspace import input_listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.decode.run.decoding import Decoding
    from analytics.dump.files.inputs import Inputs
    from analytics.dump.files.model import Plan
    from jobs.cli.console import Console
    from jobs.cli.options.ending import Limit


@dataclass(frozen=True)
class DecodeResult:
    """A finished run, told by its manifest."""

    manifest: Mapping[str, Any]

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
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    may_be_here: bool = False,
) -> DecodeResult:
    """Decode INPUTs into the workspace `out`.

    With `may_be_here` a small dump is decoded in this process, without waiting for Spark, unless
    `master` or `conf` ask for it. `keep_below_log_start` is for asking about an instant before the
    end, when what was deleted since was still the broker's.

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
    staging = Workspace(out).prepare()
    try:
        settings = Settings(staging.location, Selection(groups, exclude_groups, data_topics))
        planned = plan(found, options, known_leaders)
        is_here = may_be_here and not (master or conf or found.raw_rows)
        if is_here and is_small_plan(planned):
            decoding = decode_dump(None, planned, (), settings, options)
        else:
            decoding = _on_spark(console, planned, found, settings, options, master, conf)
        manifest = published(staging, found, planned, decoding, settings, options, listing=listing)
    except BaseException:
        # Also where the person interrupts: nothing half-written may stay.
        staging.discard()
        raise
    _warn_of_unread(console, manifest)
    return DecodeResult(manifest)


def _on_spark(
    console: Console,
    planned: Plan,
    inputs: Inputs,
    settings: Settings,
    options: PlanOptions,
    master: str | None,
    conf: Mapping[str, str] | None,
) -> Decoding:
    # Of logs the JVM only hands out tasks, however large the dump is.
    small = not inputs.raw_rows
    with spark_session(console, master=master, conf=conf, small=small) as spark:
        watched = progress(spark, console, "decoding")
        return decode_dump(spark, planned, inputs.raw_rows, settings, options, watched)


def _warn_of_unread(console: Console, manifest: Mapping[str, Any]) -> None:
    """Say what could not be read, and what changed meanwhile."""
    for each in manifest["unreadable"]:
        console.warn(": ".join(each[name] for name in ("copy", "segment", "why") if each[name]))
    for each in manifest["unplaced_rows"]:
        number = "" if each["row"] is None else f", row {each['row']:,}"
        console.warn(f"{each['file']}{number}: {each['flaw']}; not decoded")
    if number := sum(
        each["undecoded"].get(reason, 0)
        for each in manifest["reconciliation"]
        for reason in REDPANDAS
    ):
        console.warn(f"{said_of_redpanda(number)}: not decoded")
    for each in manifest["partitions"]:
        if each.get("changed_while_read"):
            console.warn(
                f"{each['copy']}: {each['topic']}-{each['partition']} changed while it was read"
            )
