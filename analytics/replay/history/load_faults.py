"""The table `load_faults`: records for which a coordinator refuses to load their partition.

A coordinator that takes a partition over replays its log, and gives up at the first record that
contradicts those before it (``GroupMetadataManager.replay``) or that it cannot read
(``CoordinatorLoaderImpl``). Compaction can bring that about: it takes the records of a group's life
one by one, each when a later one has its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    GROUP_KEY,
    MEMBER,
    REMOVED_ASSIGNMENT_EPOCH,
    SHARE,
    STREAMS,
    TARGET,
)
from analytics.replay.history.group_incarnations import is_simple
from analytics.replay.history.group_life_events import with_word
from analytics.replay.history.loading import (
    ANY,
    NOT_NEWER,
    TASKS,
    owners_on_record,
)
from analytics.replay.log.losses import WHOLE, Coverage, with_marks_of_records
from analytics.replay.log.spans import FIRST, ROW, at, last_before
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from schemas.releases import load_faults as known_faults
from schemas.releases import patch_before

if TYPE_CHECKING:
    from analytics.replay.history.loading import UnreadRecords
    from analytics.replay.log.rules import LoadingRules, ReplayRules


TOPICS = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
NO_EPOCH = -1
"""Epoch of a member whose current assignment was removed (``LEAVE_GROUP_MEMBER_EPOCH``)."""
_LIFE = (FIRST, "life")
_MEMBER = (*_LIFE, "member_id")
_OF_FAULTS = (
    *("topic", "coordinator_partition", "group_id", "record_type", "offset", "timestamp"),
    *("leader_epoch", "copy", "segment", "batch_position", "fault", "detail", "stops_loading"),
)
_Fault = tuple[str, pl.Expr, pl.Expr]
"""Word, condition, detail."""


def load_faults(
    steps: pl.DataFrame,
    commits: pl.DataFrame,
    unread: UnreadRecords,
    rules: ReplayRules,
    coverage: Coverage = WHOLE,
) -> pl.DataFrame:
    """Return the table `load_faults`.

    A coordinator loads what its log has: what compaction took, or what is missing within a file, it
    does not meet, either. What only the dump lacks it may well have: whether a record fits that
    then is not known.

    Args:
        steps: Of `group_incarnations`.
        commits: `GROUP_KEY` and `offset` of commits that are no tombstones.
        unread: Records that the release cannot read, or that did not decode.
        rules: Of the release that loads them.
        coverage: What the dump holds.
    """
    checks = {each.group_records == "checked" for each in rules.loading}
    told = _with_context(steps) if True in checks else None
    found = []
    for loading in rules.loading:
        parts = [unread.faults(loading, is_newest=rules.is_newest)]
        if told is not None and loading.group_records == "checked":
            parts.append(_misfits(told, commits, loading))
        found.append(pl.concat([each.select(_OF_FAULTS) for each in parts]))
    faults = _by_patch(found, rules.loading)
    named = faults.rename({"timestamp": "at", "offset": "record_offset"})
    return contract_frame(_with_marks(named, coverage), "load_faults")


def _with_marks(faults: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Mark faults that a lost record may have kept from being any: nobody knows what they stop."""
    is_of_earlier = pl.col("fault").is_in(known_faults().of_earlier)
    first = pl.when(~is_of_earlier).then("record_offset").otherwise(0)
    marked = with_marks_of_records(
        faults.with_columns(first.cast(pl.Int64).alias("rests_from")),
        coverage.of_loading,
        "rests_from",
        "record_offset",
        log="topic",
    )
    is_known = pl.col("complete") | ~is_of_earlier
    return marked.with_columns(
        pl.when(is_known).then(name).alias(name) for name in ("stops_loading", "patch_releases")
    )


def _by_patch(faults: list[pl.DataFrame], loading: tuple[LoadingRules, ...]) -> pl.DataFrame:
    """Bring together what each of the patch releases that it may be finds.

    A record that stops only some of them may stop the release, as may any that is met only where
    another one did not stop it before.
    """
    if len(faults) == 1:
        return faults[0].with_columns(patch_releases=pl.lit(None, pl.String))
    place = ("topic", "coordinator_partition", "offset")
    marked = [each.with_columns(number=pl.lit(one)) for one, each in enumerate(faults)]
    stops = pl.col("stops_loading")
    spans = [_patches(loading, number) for number in range(len(loading))]
    numbers = pl.col("number").filter(stops.fill_null(value=False))
    words = numbers.replace_strict(list(range(len(spans))), spans, return_dtype=pl.String).str.join(
        ", "
    )
    others = pl.exclude(*place, "stops_loading", "number")
    every = pl.len() == len(faults)
    return (
        pl.concat(marked)
        .group_by(place, maintain_order=True)
        .agg(
            others.first(),
            pl.when(every & stops.all(ignore_nulls=False))
            .then(pl.lit(value=True))
            .when(every & ~stops.any(ignore_nulls=False))
            .then(pl.lit(value=False))
            .alias("stops_loading"),
            words.alias("patch_releases"),
        )
        .with_columns(
            patch_releases=pl.when(
                pl.col("stops_loading").is_null() & (pl.col("patch_releases") != "")
            ).then("patch_releases")
        )
    )


def _patches(loading: tuple[LoadingRules, ...], number: int) -> str:
    since = loading[number].since
    if number + 1 == len(loading):
        return f"{since} and newer"
    last = patch_before(str(loading[number + 1].since))
    return str(since) if since == last else f"{since} to {last}"


def _with_context(steps: pl.DataFrame) -> pl.DataFrame:
    """Return the records with what they meet, by whatever release they are loaded."""
    met = _with_group_met(steps)
    is_classic = pl.col("family") == CLASSIC
    # What remains of groups of other types does not matter to classic ones, which most are.
    told = pl.concat(
        [met.filter(is_classic), _with_what_remains(met.filter(~is_classic))], how="diagonal"
    )
    return told.join(owners_on_record(steps), on=ROW, how="left", maintain_order="left")


def _misfits(records: pl.DataFrame, commits: pl.DataFrame, rules: LoadingRules) -> pl.DataFrame:
    """Return the records that do not fit what their group is when they come."""
    number, word, detail = _first_of(_faults(rules))
    return (
        _with_commits_met(records, commits, rules)
        .filter(~_is_skipped(rules))
        .with_columns(number.alias("number"))
        .filter(pl.col("number").is_not_null())
        .with_columns(word.alias("fault"), detail.alias("detail"))
        .with_columns(
            pl.lit(TOPICS[0]).alias("topic"),
            (~pl.col("fault").is_in(known_faults().tolerated)).alias("stops_loading"),
        )
        .unnest("position")
    )


# --- what a record meets -------------------------------------------------------------------------


def _with_group_met(steps: pl.DataFrame) -> pl.DataFrame:
    """Say which group is there when a record comes.

    Returns:
        The steps with `met` (its type, null where there is none), `met_simple` (boolean), `own`
        (boolean: the record is about that group, or makes it) and `since` (bigint: offset of the
        record that removed the last one, null where none did).
    """
    family, gone = pl.col("family"), pl.col("is_tombstone")
    makes = pl.col("starts") | ((family == CLASSIC) & ~gone)
    # The classic tombstone removes a group that commits made, too, which is no life of a group.
    removes = pl.col("ends") | ((family == CLASSIC) & gone)
    made = pl.when(makes).then(family)
    met = pl.col("met")
    return (
        steps.with_columns(
            last_before(makes | removes).alias("mark"),
            made.alias("made"),
            (makes & is_simple()).alias("made_simple"),
        )
        .with_columns(
            at("mark", "made").alias("met"),
            at("mark", "made_simple").fill_null(value=False).alias("met_simple"),
            at("mark", "offset").alias("since"),
        )
        .with_columns(
            (pl.col("starts") | (met == family).fill_null(value=False)).alias("own"),
            pl.when(met.is_null()).then("since").alias("since"),
        )
        .drop("mark", "made", "made_simple", "items", "about")
    )


def _with_commits_met(
    met: pl.DataFrame, commits: pl.DataFrame, rules: LoadingRules
) -> pl.DataFrame:
    """Say where a record meets a group that commits made, and that does not give way to it.

    Returns:
        The steps with `met_commits` (boolean).
    """
    firm = [SHARE, STREAMS] if rules.streams_over_simple == "refused" else [SHARE]
    lonely = met.filter(pl.col("met").is_null() & pl.col("family").is_in(firm))
    last = lonely.select(*GROUP_KEY, ROW, "offset", "since").join_asof(
        commits.select(*GROUP_KEY, pl.col("offset").alias("committed_at")).sort("committed_at"),
        left_on="offset",
        right_on="committed_at",
        by=list(GROUP_KEY),
        allow_exact_matches=False,
        check_sortedness=False,
    )
    found = last.filter(pl.col("committed_at") > pl.col("since").fill_null(-1))
    return met.with_columns(pl.col(ROW).is_in(found[ROW].implode()).alias("met_commits"))


def _with_what_remains(met: pl.DataFrame) -> pl.DataFrame:
    """Say what the record's group and member have when it comes.

    Returns:
        The steps with `there` (boolean: the member is), `member_epoch`, `has_target` (boolean),
        `members` and `targets` (how many there are), `assigned_epoch` (null before the first).
    """
    role, gone, value = pl.col("role"), pl.col("is_tombstone"), ~pl.col("is_tombstone")
    joins = role.is_in([MEMBER, CURRENT]) & value
    leaves, is_target = (role == MEMBER) & gone, role == TARGET
    there, had = pl.col("there"), pl.col("has_target")
    # A member begins with epoch 0 each time that it comes.
    epoch = (
        pl.when((role == CURRENT) & value)
        .then("epoch")
        .when((role == CURRENT) & there)
        .then(NO_EPOCH)
        .when(leaves | (joins & ~there))
        .then(0)
    )
    came = (joins & ~there).cast(pl.Int64) - (leaves & there).cast(pl.Int64)
    gained = is_target & value & ~had
    gained = gained.cast(pl.Int64) - (is_target & gone & had).cast(pl.Int64)
    removed = pl.when(gone).then(REMOVED_ASSIGNMENT_EPOCH).otherwise("epoch")
    assigned = pl.when(role == ASSIGNMENT_EPOCH).then(removed)
    comes_or_goes = pl.when(joins | leaves).then(joins)
    return met.with_columns(
        _lastly(comes_or_goes, _MEMBER).fill_null(value=False).alias("there"),
        _lastly(pl.when(is_target).then(value), _MEMBER).fill_null(value=False).alias("has_target"),
    ).with_columns(
        _lastly(epoch, _MEMBER).alias("member_epoch"),
        (came.cum_sum() - came).over(_LIFE).alias("members"),
        (gained.cum_sum() - gained).over(_LIFE).alias("targets"),
        _lastly(assigned, _LIFE).alias("assigned_epoch"),
    )


# --- what does not fit ---------------------------------------------------------------------------


def _faults(rules: LoadingRules) -> list[_Fault]:
    """Return the faults in the order in which a broker finds them."""
    family, role, own = pl.col("family"), pl.col("role"), pl.col("own")
    gone = pl.col("is_tombstone")
    replaced = [CONSUMER, STREAMS] if rules.streams_over_simple == "replaced" else [CONSUMER]
    gives_way = pl.col("met_simple") & family.is_in(replaced)
    meets_other = pl.col("met").is_not_null() & (pl.col("met") != family)
    is_other = pl.col("met_commits") | (meets_other & ~gives_way)
    is_modern = family != CLASSIC
    group_goes = own & (role == GROUP) & gone & is_modern
    member_goes = own & (role == MEMBER) & gone & pl.col("there")
    is_of = with_word("the group is a ", pl.col("met").fill_null("simple"), " group")
    member = with_word("member ", pl.col("member_id"))
    takes_over = pl.col("takes_over").is_not_null() & (role == GROUP)
    has_epoch = pl.col("assigned_epoch").ne_missing(pl.lit(REMOVED_ASSIGNMENT_EPOCH))
    assigns = (group_goes & (family != STREAMS)) | (own & (role == ASSIGNMENT_EPOCH) & gone)
    return [
        ("other_type", is_modern & is_other, is_of),
        *_unmatched(rules, member),
        (
            "assignment_epoch_remains",
            takes_over & gone,
            pl.lit("it takes a simple group over, which has no assignment epoch to remove"),
        ),
        (
            "members_remain",
            group_goes & (pl.col("members") > 0),
            with_word("", pl.col("members"), " members remain"),
        ),
        (
            "targets_remain",
            assigns & (pl.col("targets") > 0),
            with_word("", pl.col("targets"), " target assignments remain"),
        ),
        (
            "assignment_epoch_remains",
            group_goes & has_epoch,
            pl.lit("the assignment epoch was not removed before"),
        ),
        (
            "member_not_left",
            member_goes & (pl.col("member_epoch") != NO_EPOCH),
            with_word("", member, " still has a current assignment or never had one"),
        ),
        (
            "member_target_remains",
            member_goes & pl.col("has_target"),
            with_word("", member, " still has a target assignment"),
        ),
        *_owned(rules),
        ("replaces_other_type", (family == CLASSIC) & ~gone & meets_other, is_of),
    ]


def _owned(rules: LoadingRules) -> list[_Fault]:
    column = {"any": ANY, "not_newer": NOT_NEWER}.get(rules.owned_partitions)
    found = [] if column is None else [("partition_still_owned", column)]
    if rules.owned_tasks == "checked":
        found.append(("task_not_owned", TASKS))
    return [(word, pl.col(name).is_not_null(), pl.col(name)) for word, name in found]


def _unmatched(rules: LoadingRules, member: pl.Expr) -> list[_Fault]:
    if rules.unmatched_share_records != "refused":
        return []
    role, is_share, gone = pl.col("role"), pl.col("family") == SHARE, pl.col("is_tombstone")
    makes_group = role.is_in([GROUP, MEMBER]) & ~gone
    no_group = is_share & pl.col("met").is_null() & ~makes_group
    needs_member = (role == CURRENT) | ((role == MEMBER) & gone)
    no_member = is_share & pl.col("own") & needs_member & ~pl.col("there")
    return [
        ("no_group", no_group, pl.lit("there is no group")),
        ("no_member", no_member, with_word("", member, " is not there")),
    ]


def _is_skipped(rules: LoadingRules) -> pl.Expr:
    """Whether a broker of the release does not know the record's type."""
    streams = pl.lit(rules.streams_over_simple == "skipped") & (pl.col("family") == STREAMS)
    # Of what makes no group there is one type, which only 4.0 knows.
    return streams | (pl.lit(rules.unmatched_share_records != "refused") & ~pl.col("creates"))


def _first_of(faults: list[_Fault]) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Return the number of a record's first fault; the word and the detail of `number`."""
    first = pl.coalesce(
        pl.when(condition).then(each) for each, (_, condition, _) in enumerate(faults)
    )
    number = pl.col("number")
    words = pl.coalesce(
        pl.when(number == each).then(pl.lit(word)) for each, (word, *_) in enumerate(faults)
    )
    details = pl.coalesce(
        pl.when(number == each).then(detail) for each, (*_, detail) in enumerate(faults)
    )
    return first, words, details


def _lastly(value: pl.Expr, of: tuple[str, ...]) -> pl.Expr:
    """Return what was said last before this record."""
    return value.forward_fill().shift(1).over(of)
