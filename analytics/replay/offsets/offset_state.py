"""Committed and pending offsets (``OffsetMetadataManager``; before 4.0 ``GroupMetadataManager``).

Of the commits that took effect the one with the greatest record offset is in force, because a
commit outside transactions overwrites what is there and one that takes effect by a marker does so
only where its own record is the later one. A tombstone removes what came before it.

Takes decoded tables of whole groups, cut at an instant, with all markers of their partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import polars as pl

from analytics.contracts import (
    BEFORE_ALL,
    contract_frame,
    contract_schema,
    instant,
    offset_in_force,
    present,
    uuid,
)
from analytics.replay.between_cuts import WHY, between_cuts
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.log_times import Decoded
from analytics.replay.log.losses import (
    HOME,
    WHOLE,
    Coverage,
    may_be_elsewhere,
    may_be_superseded,
    uncompacted_from,
    with_missing,
)
from analytics.replay.log.rules import ReplayRules
from analytics.replay.offsets.commit_rows import (
    KEY,
    PLACE,
    commit_rows,
    in_log_order,
    marker_rows,
    placed_commits,
    removed_for_now,
    with_range,
)
from analytics.replay.offsets.effective_commits import (
    COMMIT,
    ended_commits,
    last_of_transactions,
    transaction_owners,
    waits,
    with_owner,
)

# Commits in transactions that outlive the removal of their offset, and whom that depends on.
#
# Before 4.0 a tombstone outside transactions leaves what is pending in the log: the coordinator
# that wrote it has dropped that from memory (``GroupMetadata.removeOffsets``), and one that loads
# the log later has it again (``GroupMetadataManager.loadGroupsAndOffsets``).

TRANSACTION: Final = "transaction"
_WHY: Final = (
    "a coordinator that has run since offset {} dropped it there with a tombstone; one that loads "
    "the log has it"
)
_EPOCHS: Final = pl.Schema({HOME: pl.Int32(), "last_epoch": pl.Int32()})


def last_epochs(decoded: Decoded, rules: ReplayRules) -> pl.DataFrame:
    """Return the last leader epoch that a partition's records tell of, as far as any asks for it.

    Args:
        decoded: Decoded tables, cut at an instant.
        rules: Of the release.

    Returns:
        `coordinator_partition` and `last_epoch`; see `merged_epochs`.
    """
    if rules.tombstones_remove_everything:
        return pl.DataFrame(schema=_EPOCHS)
    return merged_epochs(
        decoded[name].select(pl.col("partition").alias(HOME), last_epoch="leader_epoch")
        for name in ("offset_commit", "group_metadata")
    )


def merged_epochs(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return `last_epochs` of what several buckets tell."""
    return pl.concat(parts).group_by(HOME).agg(pl.col("last_epoch").max())


def with_outlived_removal(
    rows: pl.DataFrame,
    decoded: Decoded,
    rules: ReplayRules,
    coverage: Coverage,
    epochs: pl.DataFrame | None,
) -> pl.DataFrame:
    """Add `outlived`: why it depends on the coordinator whether there is such a commit, else null.

    A later leader epoch shows that the log was loaded since.

    Args:
        rows: Commits with their `KEY`, `record_offset` and `via`.
        decoded: Decoded tables of the same groups, cut at an instant.
        rules: Of the release.
        coverage: Whose answer is asked for.
        epochs: Of `last_epochs`, of whole partitions; None where `decoded` has them.
    """
    in_transactions = rows.filter(pl.col("via") == TRANSACTION)
    depends = not rules.tombstones_remove_everything and coverage.is_of_running
    if not depends or in_transactions.is_empty():
        return rows.with_columns(outlived=pl.lit(None, pl.String))
    if epochs is None:
        epochs = last_epochs(decoded, rules)
    removed = _last_removals(decoded, in_transactions)
    told = rows.join(removed, on=KEY, how="left").join(epochs, on=HOME, how="left")
    is_open = (
        (pl.col("via") == TRANSACTION)
        & (pl.col("removed_at") > pl.col("record_offset"))
        & ~(pl.col("last_epoch") > pl.col("removal_epoch")).fill_null(value=False)
    )
    why = pl.when(is_open).then(pl.format(_WHY, "removed_at"))
    return told.with_columns(outlived=why).drop("removed_at", "removal_epoch", "last_epoch")


def _last_removals(decoded: Decoded, of: pl.DataFrame) -> pl.DataFrame:
    """Return `KEY`, `removed_at` and `removal_epoch` of the last tombstone outside transactions."""
    commits = decoded["offset_commit"]
    plain = ~pl.col("is_transactional").fill_null(value=False)
    return (
        commit_rows(commits.filter(pl.col("is_tombstone") & plain))
        .join(of, on=KEY, how="semi")
        .sort("record_offset")
        .unique(KEY, keep="last", maintain_order=True)
        .select(*KEY, removed_at="record_offset", removal_epoch="leader_epoch")
    )


_TABLE: Final = "offset_commit"
_NARROW: Final = (
    *("row", *KEY, PLACE, "record_offset", "is_tombstone", "producer_id", "is_transactional"),
)
_COMMIT_COLUMNS: Final = (
    *("partition", "key", "value", "offset", "leader_epoch", "is_tombstone"),
    *("is_transactional", "producer_id", "producer_epoch"),
)
"""What `_meaning` takes of a decoded commit: rows are gathered, which each column adds to."""
_OFFSET: Final = pl.col("record_offset")


def committed_offsets(
    decoded: Decoded,
    rules: ReplayRules,
    removed_groups: pl.DataFrame | None = None,
    coverage: Coverage = WHOLE,
    pending: pl.DataFrame | None = None,
    epochs: pl.DataFrame | None = None,
    commits: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the table `committed_offsets`, in the order of `PLACE`.

    Args:
        decoded: The decoded tables.
        rules: Of the release.
        removed_groups: What `groups_gone` returns; nothing is answered for these groups.
        coverage: What the dump holds.
        pending: The table `pending_offsets`, of the same.
        epochs: Of `last_epochs`, of whole partitions; None where `decoded` has them.
        commits: Of `placed_commits`; None where they are of `decoded` alone.
    """
    commits = _commits(decoded, commits)
    latest = _in_force(commits, decoded, rules)
    if coverage.undecided and not rules.tombstones_remove_everything:
        latest = pl.concat([latest, removed_for_now(commits, coverage)], how="diagonal")
    latest = _of_groups_there(latest, removed_groups)
    found = _meaning(decoded, latest, rules).with_columns(latest[PLACE])
    told = with_range(found, commits, decoded, rules, coverage).drop(PLACE)
    told = with_outlived_removal(told, decoded, rules, coverage, epochs)
    told = _with_uncertain(_with_unsettled(told, pending), decoded, rules, coverage)
    lost, elsewhere = may_be_superseded(coverage, _OFFSET), may_be_elsewhere(coverage)
    said = _with_completeness(told, lost, elsewhere, pl.col("unsettled"), pl.col(WHY))
    return contract_frame(said, "committed_offsets")


def pending_offsets(
    decoded: Decoded,
    rules: ReplayRules,
    coverage: Coverage = WHOLE,
    owners: pl.DataFrame | None = None,
    epochs: pl.DataFrame | None = None,
    commits: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the table `pending_offsets`; arguments as of `committed_offsets`.

    What is pending outlives its group: no tombstone of a group takes it, and a fetch that asks for
    stable offsets is refused before the coordinator looks for the group.

    Args:
        decoded: The decoded tables.
        rules: Of the release.
        coverage: What the dump holds.
        owners: Of `transaction_owners`; None where `decoded` has the transaction log.
        epochs: Last leader epochs.
        commits: The rows.
    """
    commits = _commits(decoded, commits)
    entries = _entries(commits, decoded, rules).filter(pl.col("end_offset").is_null())
    if entries.is_empty():
        return pl.DataFrame(schema=contract_schema("pending_offsets"))
    if rules.tombstones_remove_everything:
        entries = _outliving_tombstones(entries, commits, rules, _OFFSET)
    found = _meaning(decoded, entries, rules)
    found = found.with_columns(undecided=pl.lit(None, pl.String))
    found = with_outlived_removal(found, decoded, rules, coverage, epochs)
    if owners is None:
        owners = transaction_owners(decoded["transaction_log"], coverage)
    found = _with_uncertain(with_owner(found, owners), decoded, rules, coverage)
    lost, elsewhere = may_be_superseded(coverage, _OFFSET), may_be_elsewhere(coverage)
    said = _with_completeness(found, lost, elsewhere, _may_have_ended(coverage), pl.col(WHY))
    return contract_frame(said, "pending_offsets")


def _of_groups_there(entries: pl.DataFrame, removed_groups: pl.DataFrame | None) -> pl.DataFrame:
    return (
        entries
        if removed_groups is None
        else entries.join(removed_groups, on=GROUP_KEY, how="anti")
    )


def _commits(decoded: Decoded, commits: pl.DataFrame | None) -> pl.DataFrame:
    """Return `_NARROW` of all commits and tombstones."""
    return (placed_commits(decoded[_TABLE]) if commits is None else commits).select(_NARROW)


def _in_force(commits: pl.DataFrame, decoded: Decoded, rules: ReplayRules) -> pl.DataFrame:
    """Return the `row` of commits in force with their `KEY`, which no two have."""
    by_itself = commits.filter(~_is_pending(rules))
    by_marker = _entries(commits, decoded, rules).filter(pl.col("outcome") == COMMIT)
    is_value = ~pl.col("is_tombstone")
    if rules.tombstones_remove_everything:
        # One record after the other, whatever made it count: a tombstone outdoes those before it.
        return _last(by_itself, by_marker).filter(is_value)
    # What a tombstone leaves pending takes effect behind it, when the marker comes.
    left = _outliving_tombstones(by_marker, commits, rules, pl.col("end_offset"))
    own = _last(by_itself).filter(is_value)
    return own if left.is_empty() else _last(own, left)


def _last(*commits: pl.DataFrame) -> pl.DataFrame:
    """Return the last record of each `KEY` with `_NARROW`, in the order of `PLACE`."""
    there = [each.select(_NARROW) for each in commits if each.height] or [commits[0]]
    rows = in_log_order(pl.concat(there))
    key = pl.col(PLACE)
    ordered = rows.select(PLACE).with_row_index("nth").sort(PLACE, maintain_order=True)
    return rows[ordered.filter((key != key.shift(-1)).fill_null(value=True))["nth"]]


def _entries(commits: pl.DataFrame, decoded: Decoded, rules: ReplayRules) -> pl.DataFrame:
    """Return pending commits at the end of their transaction, or of the log.

    A tombstone in a transaction takes out what is pending in it.

    Returns:
        `_NARROW`, `end_offset` and `outcome`.
    """
    pending = commits.filter(_is_pending(rules))
    waiting = pending.with_columns(removes="is_tombstone", is_tombstone=pl.lit(value=False))
    ended = ended_commits(waiting, marker_rows(decoded["control_markers"]), rules)
    return last_of_transactions(ended).filter(~pl.col("removes"))


def _outliving_tombstones(
    entries: pl.DataFrame, commits: pl.DataFrame, rules: ReplayRules, effect: pl.Expr
) -> pl.DataFrame:
    """Keep entries with an `effect` (an offset) after the last plain tombstone of their key."""
    if entries.is_empty():
        return entries
    removed = (
        commits.filter(pl.col("is_tombstone") & ~_is_pending(rules))
        .group_by(KEY)
        .agg(_OFFSET.max().alias("removed_at"))
    )
    told = entries.join(removed, on=KEY, how="left")
    return told.filter(effect > pl.col("removed_at").fill_null(BEFORE_ALL))


def _is_pending(rules: ReplayRules) -> pl.Expr:
    """Whether a record waits for a marker."""
    if rules.tombstones_remove_everything:
        return waits(rules) & ~pl.col("is_tombstone")
    return waits(rules)


def _may_have_ended(coverage: Coverage) -> pl.Expr:
    """Return why a transaction may have ended all the same, null where it has not.

    Where the log cleaner has been offsets are missing anyway: they do not show that a marker is
    lost. There only the transaction log tells that the transaction is still open.
    """
    text = "its marker may be missing: the log cleaner has been there, and no transaction log that "
    text += "is in the dump has the transaction open"
    return pl.when(~pl.col("is_open") & (uncompacted_from(coverage) > _OFFSET)).then(pl.lit(text))


def _with_unsettled(offsets: pl.DataFrame, pending: pl.DataFrame | None) -> pl.DataFrame:
    """Add `unsettled`: the later commit that has replaced this one if its transaction committed."""
    if pending is None or pending.is_empty():
        return offsets.with_columns(unsettled=pl.lit(None, pl.String))
    may_count = (
        pending.filter(~pl.col("complete"))
        .sort("record_offset")
        .unique(KEY, keep="last", maintain_order=True)
        .select(*KEY, _OFFSET.alias("later"), pl.col("missing").alias("why"))
    )
    text = pl.format("the commit in record {} may have replaced it: {}", "later", "why")
    return offsets.join(may_count, on=KEY, how="left").with_columns(
        unsettled=pl.when(pl.col("later") > _OFFSET).then(text)
    )


def _with_uncertain(
    offsets: pl.DataFrame, decoded: Decoded, rules: ReplayRules, coverage: Coverage
) -> pl.DataFrame:
    """Add `WHY`: why another record than this one may have counted at the instant."""
    uncertain = between_cuts(decoded, rules, coverage).offsets
    return offsets.join(uncertain, on=KEY, how="left", maintain_order="left")


def _with_completeness(offsets: pl.DataFrame, *lost: pl.Expr) -> pl.DataFrame:
    """Add `complete` and `missing`: whether no lost record can have changed what a row says.

    A commit that a marker made count is judged by its own record, too: behind that, the marker
    that ended its transaction first may be lost.
    """
    why = pl.concat_str("undecided", "outlived", *lost, separator="; ", ignore_nulls=True)
    return with_missing(offsets, why)


def _meaning(decoded: Decoded, places: pl.DataFrame, rules: ReplayRules) -> pl.DataFrame:
    """Return what the commits in some rows say: columns that both tables share, by `KEY`."""
    found = decoded[_TABLE].select(_COMMIT_COLUMNS)[places["row"]]
    value = pl.col("value").struct
    via = pl.when(_is_pending(rules)).then(pl.lit(TRANSACTION)).otherwise(pl.lit("plain"))
    return found.select(
        pl.col("partition").alias(HOME),
        pl.col("key").struct.field("group").alias("group_id"),
        pl.col("key").struct.field("topic", "partition"),
        uuid(value.field("topic_id")),
        offset_in_force(value.field("offset")).alias("committed_offset"),
        present(value.field("leader_epoch")).alias("committed_leader_epoch"),
        value.field("metadata"),
        instant(value.field("commit_timestamp")).alias("commit_timestamp"),
        instant(value.field("expire_timestamp")).alias("expire_timestamp"),
        via.alias("via"),
        pl.col("offset").alias("record_offset"),
        "leader_epoch",
        "producer_id",
        "producer_epoch",
    )
