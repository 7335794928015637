"""What explains that a snapshot's state is not what its cluster answered.

A coordinator answers from its memory, which is made of records that it wrote. So a difference is
explained by a record that was written after the log had been read, or by an answer that is another
one when asked again, or because coordinators write no record of it: of a classic group that
rebalances (``ClassicGroup``: it is written when all members have what they get), and of one that
has neither members nor offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import polars_rows
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.cluster.comparison import (
    ANSWERED_BY,
    ASSIGNMENT,
    DESCRIPTION,
    GROUP,
    KEY,
    LISTED,
    LOOK,
    MEMBER,
    OFFSET,
    OFFSETS,
    SHARE_PARTITION,
)
from analytics.replayed.end_offsets import snapshot_at
from schemas.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

EXPLAINED, CONTRADICTS, CANNOT_TELL = "explained", "contradicts", "cannot_tell"
WRITTEN, OTHERWISE, MEMORY = "written_since", "answered_otherwise_later", "in_memory_only"
_REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance")
_NOT_THERE: Final = ("GROUP_ID_NOT_FOUND",)
_DEAD: Final = "Dead"
_OF_MEMBERSHIP: Final = (GROUP, MEMBER, ASSIGNMENT)
_UNLISTED: Final = "brokers leave out groups that may not be described, without a word"
_UNLISTED_TOPIC: Final = "brokers leave out topics that may not be described, without a word"
_REFUSED: Final = "the cluster answered "
_NOT_READ: Final = "what was written since could not be read: "
_SOME_LOGS: Final = "only some internal topics or partitions were decoded"
_NOT_ASKED_AGAIN: Final = "the group was not asked for again"
_PLACE: Final = ("group_id", "topic", "partition")
_LOG: Final = ["topic", "partition"]


def with_reasons(
    differences: pl.DataFrame, answers: pl.DataFrame, state: ReplayedWorkspace
) -> pl.DataFrame:
    """Return differences with `verdict`, `reason` and `missing`.

    Args:
        differences: `kind`, `KEY`, `value`, `missing`, `answer`, `error`.
        answers: Rows of `cluster_answers`, of both looks.
        state: The replayed snapshot.
    """
    rows = _with_memory(
        _with_second_look(_with_records(differences, answers, state), answers), answers
    )
    rows = _with_unread(rows, answers, state)
    not_again = _why_not_again(answers)
    reason = (
        pl.when("is_written")
        .then(pl.lit(WRITTEN))
        .when("is_in_memory")
        .then(pl.lit(MEMORY))
        .when("is_otherwise")
        .then(pl.lit(OTHERWISE))
    )
    refusal = pl.concat_str(pl.lit(_REFUSED), pl.coalesce("error", "later_error"))
    is_unlisted = (pl.col("field") == LISTED) & pl.col("answer").is_null()
    is_unproven = is_unlisted & ~pl.col("is_gone")
    is_hidden = pl.col("answer").is_null() & pl.col("topic").is_not_null()
    is_hidden &= ~pl.col("topic").is_in(_described(state))
    lacks = pl.coalesce(
        pl.when(pl.col("kind") == LOOK).then("error"),
        refusal,
        pl.when(is_unproven).then(pl.lit(_UNLISTED)),
        pl.when(is_hidden).then(pl.lit(_UNLISTED_TOPIC)),
        "missing",
        "unread",
        pl.when(pl.col("value").is_null() & _is_of_some_logs(state)).then(pl.lit(_SOME_LOGS)),
        pl.when(~pl.col("is_asked_again")).then(pl.lit(not_again)),
    )
    rows = rows.with_columns(reason.alias("reason"), lacks.alias("missing"))
    rows = _with_gaps(rows, state)
    is_explained = pl.col("reason").is_not_null()
    rows = rows.with_columns(pl.when(~is_explained).then("missing").alias("missing"))
    verdict = (
        pl.when(is_explained)
        .then(pl.lit(EXPLAINED))
        .when(pl.col("missing").is_not_null())
        .then(pl.lit(CANNOT_TELL))
        .otherwise(pl.lit(CONTRADICTS))
    )
    return rows.with_columns(
        verdict.alias("verdict"), pl.col("missing").is_null().alias("complete")
    )


def _is_of_some_logs(state: ReplayedWorkspace) -> pl.Expr:
    """Return whether a decode run was to read some logs only, so that others may have the rest."""
    options = state.manifest["options"]
    return pl.lit(bool(options.get("topics") or options.get("partitions")))


def _why_not_again(answers: pl.DataFrame) -> str:
    """Return why a group was not asked for again: without that nothing contradicts.

    The second look is taken when the first is written: where it was interrupted there is none.
    """
    is_failed = (pl.col("look") == 2) & (pl.col("kind") == LOOK)
    whys = answers.filter(is_failed)["error"].drop_nulls().sort().to_list()
    return ": ".join([_NOT_ASKED_AGAIN, *whys[:1]])


def _described(state: ReplayedWorkspace) -> list[str]:
    """Return the topics that the cluster described."""
    snapshot = snapshot_at(state)
    return [] if snapshot is None else [each["topic"] for each in snapshot["topics"]]


def _with_records(
    differences: pl.DataFrame, answers: pl.DataFrame, state: ReplayedWorkspace
) -> pl.DataFrame:
    """Add `is_written`: a record of it was written since, or a transaction of it ended."""
    records = answers.filter(pl.col("kind") == "record")
    of_groups = records.filter(pl.col("field") == "group")["group_id"]
    pending = _ended(answers, state)
    of_offsets = pl.concat(
        [records.filter(pl.col("field") == "offset").select(_PLACE), pending.select(_PLACE)]
    ).unique()
    topics = polars_rows(state.tables.read("topics", ["topic", "topic_id"]))
    of_shares = (
        records.filter(pl.col("field") == "share_partition")
        .select("group_id", pl.col("value").alias("topic_id"), "partition")
        .join(topics, "topic_id")
        .select(_PLACE)
        .unique()
    )
    rows = differences
    for name, keys in (("of_offset", of_offsets), ("of_share", of_shares)):
        flag = keys.with_columns(pl.lit(value=True).alias(name))
        rows = rows.join(flag, list(_PLACE), "left", nulls_equal=True)
    is_group = pl.col("group_id").is_in(of_groups.implode())
    has_offsets = pl.col("group_id").is_in(of_offsets["group_id"].implode())
    kind = pl.col("kind")
    is_written = (
        (kind.is_in([*_OF_MEMBERSHIP, SHARE_PARTITION]) & is_group)
        | ((kind == GROUP) & (pl.col("field") == LISTED) & has_offsets)
        | ((kind == OFFSET) & pl.col("of_offset"))
        | ((kind == SHARE_PARTITION) & pl.col("of_share"))
    )
    return rows.with_columns(is_written.fill_null(value=False).alias("is_written"))


def _ended(answers: pl.DataFrame, state: ReplayedWorkspace) -> pl.DataFrame:
    """Return offsets that were pending where transactions have ended since."""
    names = ("group_id", "topic", "partition", "coordinator_partition")
    pending = polars_rows(state.tables.read("pending_offsets", names))
    markers = answers.filter((pl.col("kind") == "marker") & (pl.col("topic") == CONSUMER_OFFSETS))[
        "partition"
    ]
    return pending.filter(pl.col("coordinator_partition").is_in(markers.implode()))


def _with_second_look(differences: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Add what the second look says of the same.

    Adds `is_asked_again`, `is_otherwise`, `later_error`, and `is_gone`: there is no such group.
    """
    later = answers.filter(pl.col("look") == 2)
    of_groups = later.filter(pl.col("kind") == GROUP)
    asked = of_groups.filter(pl.col("field").is_in([LISTED, DESCRIPTION, OFFSETS]))
    status = asked.select("group_id", pl.col("field").alias("question"), "value", "error")
    question = (
        pl.when(pl.col("field") == LISTED)
        .then(pl.lit(DESCRIPTION))
        .otherwise(pl.col("kind").replace(ANSWERED_BY))
    )
    status = status.rename({"value": "later_status", "error": "later_error"}).unique(
        ["group_id", "question"]
    )
    rows = differences.with_columns(question.alias("question"))
    rows = rows.join(status, ["group_id", "question"], "left", nulls_equal=True)
    values = later.filter(pl.col("error").is_null())
    values = values.select("kind", *KEY, pl.col("value").alias("later")).unique(["kind", *KEY])
    rows = rows.join(values, ["kind", *KEY], "left", nulls_equal=True)
    dead = of_groups.filter((pl.col("field") == "state") & (pl.col("value") == _DEAD))["group_id"]
    is_gone = pl.col("later_error").is_in(_NOT_THERE) | pl.col("group_id").is_in(dead.implode())
    is_asked = pl.col("later_status").is_not_null() & ~is_gone.fill_null(value=False)
    is_otherwise = is_asked & ~pl.col("later").eq_missing(pl.col("answer"))
    is_asked_again = pl.col("later_status").is_not_null() | pl.col("later_error").is_not_null()
    return rows.with_columns(
        (is_asked_again | (pl.col("kind") == LOOK)).alias("is_asked_again"),
        is_otherwise.fill_null(value=False).alias("is_otherwise"),
        is_gone.fill_null(value=False).alias("is_gone"),
        pl.when(~pl.col("later_error").is_in(_NOT_THERE)).then("later_error").alias("later_error"),
    )


def _with_memory(differences: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Add `is_in_memory`: coordinators write no record of it."""
    first = answers.filter(pl.col("look") == 1)
    of_groups = first.filter(pl.col("kind") == GROUP)
    classic = of_groups.filter((pl.col("field") == LISTED) & (pl.col("value") == "classic"))
    states = of_groups.filter(pl.col("field") == "state").join(classic, "group_id", "semi")
    rebalancing = states.filter(pl.col("value").is_in(_REBALANCING))["group_id"]
    answered = of_groups.filter(
        pl.col("field").is_in([DESCRIPTION, OFFSETS]) & pl.col("value").is_not_null()
    )
    # Both were answered, and there is nothing of either.
    both = answered.group_by("group_id").len().filter(pl.col("len") == 2)
    having = first.filter(pl.col("kind").is_in([OFFSET, MEMBER]))["group_id"]
    nothing = classic.join(both, "group_id", "semi")["group_id"]
    is_bare = pl.col("group_id").is_in(nothing.implode()) & ~pl.col("group_id").is_in(
        having.implode()
    )
    is_rebalancing = pl.col("group_id").is_in(rebalancing.implode())
    is_absent = (pl.col("field") == LISTED) & pl.col("value").is_null()
    is_in_memory = (pl.col("kind").is_in(_OF_MEMBERSHIP) & is_rebalancing) | (is_absent & is_bare)
    return differences.with_columns(is_in_memory.fill_null(value=False).alias("is_in_memory"))


def _with_unread(
    differences: pl.DataFrame, answers: pl.DataFrame, state: ReplayedWorkspace
) -> pl.DataFrame:
    """Add `unread`: what of the logs where it would lie the dump lacks, or was not read since."""
    failed = answers.filter((pl.col("kind") == "log_read") & pl.col("error").is_not_null())
    since = failed.select(
        *_LOG, pl.concat_str(pl.lit(_NOT_READ), "error").alias("error"), pl.lit(1).alias("rank")
    )
    failed = pl.concat([_lacking(state), since]).sort("rank", *_LOG).unique(_LOG, keep="first")
    failed = failed.sort("rank", *_LOG)
    groups = polars_rows(state.tables.read("groups", ["group_id", "coordinator_partition"]))
    rows = differences.join(groups, "group_id", "left", nulls_equal=True)
    of_groups = failed.filter(pl.col("topic") == CONSUMER_OFFSETS)
    of_shares = failed.filter(pl.col("topic") == SHARE_GROUP_STATE)
    why = of_groups.select(
        pl.col("partition").alias("coordinator_partition"), pl.col("error").alias("why")
    )
    rows = rows.join(why, "coordinator_partition", "left")
    # Where a group would lie that the state lacks is not known here, nor where share state does:
    # any log may matter. What the dump lacks of the group itself, `_with_gaps` says.
    anywhere, any_share = (
        each["error"][0] if len(each) else None
        for each in (of_groups.filter(pl.col("rank") == 1), of_shares)
    )
    is_share = pl.col("kind") == SHARE_PARTITION
    reason = pl.coalesce(
        "why",
        pl.when(pl.col("coordinator_partition").is_null()).then(pl.lit(anywhere, pl.String)),
        pl.when(is_share).then(pl.lit(any_share, pl.String)),
    )
    return rows.with_columns(reason.alias("unread"))


def _lacking(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return the logs of which the dump lacks records, and which: what they say is not all."""
    manifest = state.manifest
    absent = [
        (topic, number, f"{topic}-{number} is not in the dump")
        for topic, numbers in manifest["absent_partitions"].items()
        for number in numbers
    ]
    lost = [
        (each["topic"], each["partition"], each["lacks"])
        for each in manifest["partitions"]
        if each.get("is_leading", True) and each.get("lacks")
    ]
    schema = {"topic": pl.String, "partition": pl.Int32, "error": pl.String}
    rows = pl.DataFrame([*absent, *lost], schema, orient="row")
    return rows.with_columns(pl.lit(0).alias("rank"))


def _with_gaps(rows: pl.DataFrame, state: ReplayedWorkspace) -> pl.DataFrame:
    """Say what the dump lacks of things that it does not have, where nothing else explains them."""
    is_open = pl.col("reason").is_null() & pl.col("missing").is_null() & pl.col("value").is_null()
    groups = rows.filter(is_open & pl.col("group_id").is_not_null())["group_id"].unique()
    completeness = GroupCompleteness(state)
    lacking = []
    for name in groups.sort().to_list():
        gaps = completeness.gaps_of(name)
        for which, lacks_of in (("membership", gaps.membership), ("offsets", gaps.offsets)):
            if lacks_of:
                lacking.append((name, which, lacks_of[0].words))
    schema = {"group_id": pl.String, "which": pl.String, "lacks": pl.String}
    frame = pl.DataFrame(lacking, schema, orient="row")
    is_offset = pl.col("kind") == OFFSET
    whose = pl.when(is_offset).then(pl.lit("offsets")).otherwise(pl.lit("membership"))
    joined = rows.with_columns(whose.alias("which")).join(frame, ["group_id", "which"], "left")
    lacks = pl.when(pl.col("value").is_null()).then("lacks")
    return joined.with_columns(pl.coalesce("missing", lacks).alias("missing"))
