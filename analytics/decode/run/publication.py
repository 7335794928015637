"""The end of a decode run: its manifest, and the tables where readers find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.decode.data_logs import data_log_parts
from analytics.decode.losses.divergences import divergences_part
from analytics.decode.losses.elections import partition_counts, with_elections
from analytics.decode.losses.undecoded_losses import with_undecoded_losses
from analytics.decode.losses.unjudged_elections import with_unjudged_elections
from analytics.decode.run.manifest import decode_manifest
from analytics.decode.run.reconciliation import reconciliation_of
from analytics.dump.inspection.leader_clocks import with_leader_clocks
from analytics.dump.inspection.leaderless_ends import with_absent_leaders
from analytics.workspace import BEFORE_SWAPS, FOLDERS, LISTING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.decode.run.decoding import Decoding
    from analytics.decode.tasks import Settings
    from analytics.dump.copies.plan import PlanOptions
    from analytics.dump.files.inputs import Inputs
    from analytics.dump.files.model import Plan
    from analytics.workspace import Staging

OF_LOGS_BEFORE_SWAPS = (
    *("partitions", "filled", "record_types", "reconciliation", "records_lost", "unreadable"),
)
"""What the manifest says of logs as they were before swap files, under `BEFORE_SWAPS`."""


def published(
    staging: Staging,
    inputs: Inputs,
    planned: Plan,
    decoding: Decoding,
    settings: Settings,
    options: PlanOptions,
    *,
    listing: str | None = None,
) -> dict[str, Any]:
    """Publish what was decoded and return the manifest.

    Args:
        staging: Where the tables lie.
        inputs: The INPUTs.
        planned: What was read of logs.
        decoding: What came of it.
        settings: What was wanted.
        options: What a person asked for.
        listing: A digest of the files that were read.
    """
    registered = planned.leaders.registered
    planned = with_elections(planned, registered)
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
    manifest = _manifest(inputs.arguments, said, planned, decoding, staging.location)
    manifest[BEFORE_SWAPS] = None
    parts = decoding.parts
    if planned.before_swaps is not None and decoding.before_swaps is not None:
        earlier = _manifest(
            inputs.arguments, said, planned.before_swaps, decoding.before_swaps, staging.location
        )
        parts = [*parts, *decoding.before_swaps.parts]
        manifest[BEFORE_SWAPS] = {name: earlier[name] for name in OF_LOGS_BEFORE_SWAPS}
    manifest[LISTING] = listing
    divergences = divergences_part(
        staging.location, planned.divergences, decoding.groups_only_there
    )
    data_logs = data_log_parts(staging.location, planned.copies)
    staging.publish([*parts, divergences, *data_logs], FOLDERS, manifest)
    return manifest


def _manifest(
    arguments: Sequence[str],
    options: Mapping[str, Any],
    planned: Plan,
    decoding: Decoding,
    staging: str,
) -> dict[str, Any]:
    """Return what a manifest says of what was decoded by a plan."""
    registered = planned.leaders.registered
    reconciliation = reconciliation_of(planned, decoding)
    counts = partition_counts(registered)
    manifest = decode_manifest(arguments, options, planned, decoding, reconciliation, counts)
    manifest = with_undecoded_losses(manifest, decoding.parts, staging)
    manifest = with_unjudged_elections(manifest, registered)
    manifest = with_absent_leaders(manifest, planned.leaders)
    manifest = with_leader_clocks(manifest, planned.leaders)
    manifest["records_lost"] = sum(
        each.summary.records_lost for each in decoding.slices if each.summary
    )
    return manifest
