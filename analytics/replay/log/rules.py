"""The rules of replay of each release of Kafka, and by which one a replay goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from schemas.releases import (
    PatchReleases,
    line_of,
    loading_rule_values,
    release_key,
    replay_rule_values,
)

if TYPE_CHECKING:
    from schemas.manifest import Manifest

# The rules of replay of one release of Kafka.

NEWEST = "4.4"
"""The release whose rules apply where nothing shows which one it was."""


@dataclass(frozen=True)
class LoadingRules:
    """What stops loading; `schemas/rules/loading_rules.json` says what each value means.

    Attributes:
        since: The first patch release that has these rules, where several are possible; else None.
        group_records: ``skipped`` or ``checked``.
        unknown_record_types: ``refused`` or ``skipped``.
        newest_offset_version: Of the values of committed offsets that the release reads.
        newest_group_version: Of the values of classic groups that it reads.
        unmatched_share_records: ``ignored`` or ``refused``.
        streams_over_simple: ``skipped``, ``refused`` or ``replaced``.
        owned_partitions: ``none``, ``any`` or ``not_newer``.
        owned_tasks: ``unchecked`` or ``checked``.
    """

    since: str | None
    group_records: str
    unknown_record_types: str
    newest_offset_version: int
    newest_group_version: int
    unmatched_share_records: str
    streams_over_simple: str
    owned_partitions: str
    owned_tasks: str


@dataclass(frozen=True)
class ReplayRules:
    """Every rule in which releases differ; `schemas/rules/replay_rules.json` says what each means.

    Attributes:
        pending_by: ``transactional_bit`` or ``producer_id``.
        tombstone_removes: ``own_kind`` or ``everything``.
        simple_groups_last: How long: ``offsets`` or ``removal``.
        initial_epoch: Group and assignment epoch of consumer, share and streams groups.
        initial_topology_epoch: Validated topology epoch of a streams group.
        streams_ready_by: ``configuration`` or ``validated_epoch``.
        failed_load: ``empty`` or ``refused``: what becomes of the partition.
        share_epoch_without_snapshot: State epoch where only updates of a share partition are left.
        default_consumer_assignor: Where members name none.
        share_assignor: Of all share groups.
        rebalancing_groups_keep: ``all`` offsets or those of ``subscribed`` topics.
        loading: What stops loading: of each of the patch releases that this one may be, oldest
            first.
        is_newest: No release is known that is newer: it may read more than is known here.
    """

    pending_by: str
    tombstone_removes: str
    simple_groups_last: str
    initial_epoch: int
    initial_topology_epoch: int
    streams_ready_by: str
    failed_load: str
    share_epoch_without_snapshot: int
    default_consumer_assignor: str
    share_assignor: str
    rebalancing_groups_keep: str
    loading: tuple[LoadingRules, ...]
    is_newest: bool

    @property
    def rebalancing_groups_keep_all(self) -> bool:
        """Whether the cleanup leaves a classic group with members alone while it rebalances."""
        return self.rebalancing_groups_keep == "all"

    @property
    def tombstones_remove_everything(self) -> bool:
        """Whether any tombstone removes the committed offset and all that is pending."""
        return self.tombstone_removes == "everything"

    @property
    def groups_end_by_tombstones(self) -> bool:
        """Whether every group, simple ones too, lasts until a tombstone removes it."""
        return self.simple_groups_last == "removal"

    @property
    def streams_readiness_is_recorded(self) -> bool:
        """Whether records tell that a streams group's topology is usable.

        Its state rests on that, and which offsets it keeps. In 4.1 it is in the coordinator's
        memory alone (``StreamsGroup``).
        """
        return self.streams_ready_by != "configuration"


def replay_rules(release: str | None) -> ReplayRules:
    """Return the rules of a release ("3.9", "4.3.1"), of the newest where it is None."""
    release = release or NEWEST
    values: dict[str, Any] = replay_rule_values(release)
    loading = tuple(_loading(each) for each in loading_rule_values(release))
    is_newest = line_of(release) >= release_key(NEWEST)
    return ReplayRules(**values, loading=loading, is_newest=is_newest)


def _loading(of: PatchReleases) -> LoadingRules:
    values: dict[str, Any] = dict(of.values)
    return LoadingRules(since=of.since, **values)


# By the rules of which release a replay goes.

NAMED: Final = "named"
"""A person names it now."""
NAMED_BEFORE: Final = "named before"
"""A person named it for the replay of the workspace that is asked."""
FROM_RECORDS: Final = "shown"
"""Something in the dump shows that this release or a newer one wrote it."""
NOTHING: Final = "nothing"
"""Nothing says or shows one: it is the newest that is known."""


@dataclass(frozen=True)
class ChosenRelease:
    """The release whose rules apply.

    Attributes:
        release: As X.Y or X.Y.Z.
        chosen_by: NAMED, NAMED_BEFORE, SHOWN or NOTHING.
    """

    release: str
    chosen_by: str

    @property
    def named(self) -> str | None:
        """The release, where a person named it."""
        return self.release if self.chosen_by in {NAMED, NAMED_BEFORE} else None

    def is_of(self, manifest: Manifest) -> bool:
        """Return whether a workspace was replayed by this release, chosen in the same manner."""
        if self.named is None:
            return named_release(manifest) is None
        return manifest["replay"]["kafka_version"] == self.release


def chosen_release(named: str | None, workspace: Manifest | None, dump: Manifest) -> ChosenRelease:
    """Return by which release a replay goes.

    Args:
        named: The release that a person names now.
        workspace: The manifest of a workspace that was given and is asked as such; what was named
            for its replay goes on to count. None for a dump.
        dump: The manifest of what was decoded.
    """
    before = None if workspace is None else named_release(workspace)
    if named is not None:
        return ChosenRelease(named, NAMED)
    if before is not None:
        return ChosenRelease(before, NAMED_BEFORE)
    shown = shown_release(dump)
    return ChosenRelease(NEWEST, NOTHING) if shown is None else ChosenRelease(shown, FROM_RECORDS)


def shown_release(manifest: Manifest) -> str | None:
    """Return the newest release that something in a dump shows, None where nothing does."""
    return manifest["kafka_version"].get("at_least")


def named_release(manifest: Manifest) -> str | None:
    """Return the release that a person named for the replay of a workspace, None where nobody did.

    Questions to the workspace go by it, at whatever instant.
    """
    replay = manifest.get("replay")
    if replay is None:
        return None
    replayed = replay["kafka_version"]
    # Older workspaces do not say who chose it.
    shows_it = replayed == (shown_release(manifest) or NEWEST)
    return replayed if replay.get("kafka_version_is_named", not shows_it) else None
