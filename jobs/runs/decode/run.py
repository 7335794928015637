"""What `decode` does: plan, decode on Spark, account for everything, publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.decode.data_logs import data_log_parts
from analytics.decode.divergences import divergences_part
from analytics.decode.elections import (
    partition_counts,
    registered_partitions,
    with_elections,
)
from analytics.decode.selection import Selection
from analytics.decode.tasks import Settings
from analytics.decode.undecoded_losses import with_undecoded_losses
from analytics.decode.unjudged_elections import with_unjudged_elections
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.copies.slices import Edges
from analytics.dump.files.inputs import recognize
from analytics.errors import InputNotRecognizedError
from analytics.workspace import FOLDERS, Workspace
from jobs.cli.undecoded_limit import is_exceeded
from jobs.runs.decode.decoding import Decoding, decode_dump
from jobs.runs.decode.manifest import decode_manifest
from jobs.runs.decode.reconciliation import accounts_of
from jobs.runs.limits.unread_partitions import is_unread
from jobs.spark.session import spark_session
from jobs.spark.workload import is_small_dump
from jobs.workspaces.kept_workspace import LISTING, input_listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.dump.files.inputs import Inputs
    from analytics.dump.files.model import Plan
    from analytics.workspace import Staging
    from jobs.cli.console import Console
    from jobs.cli.undecoded_limit import Limit

DONE = 0
CANNOT_TELL = 3


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
    and_no_more: bool = False,
) -> DecodeResult:
    """Decode INPUTs into the workspace `out`.

    `keep_below_log_start` is for asking about an instant before the end, when what was deleted
    since was still the broker's. `and_no_more` says that Spark gets nothing else to do: then its
    JVM only hands out tasks, however large the dump is.

    Raises:
        GroupscopeError: An INPUT, the output folder or Spark is not what it has to be.
    """
    found = recognize(inputs, topic_partition)
    for sentence in found.said:
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
        planned = plan(found, options)
        small = not found.raw_rows and (and_no_more or is_small_dump(planned.slices))
        with spark_session(console, master=master, conf=conf, small=small) as spark:
            decoding = decode_dump(
                spark,
                planned,
                found.raw_rows,
                settings,
                console,
                options,
            )
        return _publish(console, staging, found, options, settings, planned, decoding, listing)
    except BaseException:
        # Also where the person interrupts: nothing half-written may stay.
        staging.discard()
        raise


def _publish(  # noqa: PLR0913, PLR0917 - what a run is made of
    console: Console,
    staging: Staging,
    found: Inputs,
    options: PlanOptions,
    settings: Settings,
    planned: Plan,
    decoding: Decoding,
    listing: str | None,
) -> DecodeResult:
    registered = registered_partitions(decoding.parts, staging.location)
    planned = with_elections(planned, registered)
    accounts = accounts_of(planned, decoding)
    said = {
        "topics": sorted(options.topics or ()),
        "partitions": sorted(options.partitions or ()),
        "groups": list(settings.selection.groups),
        "exclude_groups": list(settings.selection.exclude_groups),
        "data_topics": list(settings.selection.topics),
        "prefer_copy": options.prefer_copy,
        "topic_partition": options.topic_partition,
        "strict_high_watermark": options.edges.strict_high_watermark,
        "keep_below_log_start": options.edges.keep_below_log_start,
        "value_encoding": options.value_encoding,
    }
    manifest = with_unjudged_elections(
        with_undecoded_losses(
            decode_manifest(found.given, said, planned, decoding, accounts),
            decoding.parts,
            staging.location,
        ),
        registered,
    )
    manifest["registered_partitions"] = partition_counts(registered)
    manifest["records_lost"] = sum(
        each.summary.records_lost for each in decoding.slices if each.summary
    )
    manifest[LISTING] = listing
    divergences = divergences_part(
        staging.location, planned.divergences, decoding.groups_only_there
    )
    data_logs = data_log_parts(staging.location, planned.copies)
    staging.publish([*decoding.parts, divergences, *data_logs], FOLDERS, manifest)
    for each in manifest["unreadable"]:
        console.warn(": ".join(each[name] for name in ("copy", "segment", "why") if each[name]))
    for each in manifest["partitions"]:
        if each.get("changed_while_read"):
            console.warn(
                f"{each['copy']}: {each['topic']}-{each['partition']} changed while it was read"
            )
    return DecodeResult(manifest)
